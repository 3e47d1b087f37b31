#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "check.h"
#include "gguf_bytes.h"
#include "model/gguf.h"

using namespace strata;
using namespace strata::test;

namespace {

std::shared_ptr<const GgufFile> parse_set(const std::vector<Bytes>& shards) {
    std::vector<std::span<const uint8_t>> views;
    for (const Bytes& shard : shards) views.emplace_back(shard.bytes);
    return GgufFile::parse_set(views);
}

/// A folder for one test, gone with it.
struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("strata-shards-" + std::to_string(::getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string write(const std::string& name, const Bytes& bytes) const {
        const auto file = path / name;
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.bytes.data()),
                   static_cast<std::streamsize>(bytes.bytes.size()));
        return file.string();
    }
};

}  // namespace

TEST(shards_are_one_model) {
    const auto shards = halves();
    const auto file = parse_set(shards);
    CHECK_EQ(file->tensors().size(), 2u);
    CHECK_EQ(file->size_bytes(), shards[0].bytes.size() + shards[1].bytes.size());
    CHECK_EQ(file->text("general.architecture"), "llama");
    CHECK_EQ(file->tensor("w")->shard, 0);
    CHECK_EQ(file->tensor("q")->shard, 1);
    CHECK(file->tensor("q")->data == shards[1].bytes.data() + file->tensor("q")->offset);  // not copied
    CHECK_EQ(static_cast<const uint8_t*>(file->weight("q", 32, 1).data)[5], 5);
}

TEST(shards_that_do_not_belong_together_are_refused) {
    CHECK_THROWS(GgufFile::parse(halves()[0].bytes, "t.gguf"),
                 "[gguf] t.gguf: is one of 2 shards (split.count), expected 1");
    CHECK_THROWS(parse_set(halves(3)), "shard 1: is one of 3 shards (split.count), expected 2");
    CHECK_THROWS(parse_set(halves(2, 0)), "shard 2: key split.no holds 0, expected 1 to 1");
    CHECK_THROWS(parse_set(halves(2, 7)), "key split.no holds 7, expected 1 to 1");
    CHECK_THROWS(parse_set(halves(2, 1, 3)),
                 "shard 1: has 2 tensors in 2 shards, expected 3 (split.tensors.count)");
    CHECK_THROWS(parse_set({halves()[0], header(0, 0)}), "shard 2: key split.count is missing");
    auto doubled = halves();
    doubled[1] = header(1, 2)
                     .key("split.count", GgufType::U16)
                     .put<uint16_t>(2)
                     .key("split.no", GgufType::U16)
                     .put<uint16_t>(1)
                     .tensor("w", {8}, 0, 0)
                     .data(32);
    CHECK_THROWS(parse_set(doubled), "shard 2: tensor w stands in shard 1 too");
    const Bytes large = header(0, 1).key("split.count", GgufType::U32).u32(65536);
    CHECK_THROWS(GgufFile::parse(large.bytes, "t.gguf"), "key split.count holds 65536, expected 0 to 65535");
    const Bytes alone =
        header(1, 1).key("split.tensors.count", GgufType::I32).u32(4).tensor("w", {8}, 0, 0).data(32);
    CHECK_THROWS(GgufFile::parse(alone.bytes, "t.gguf"), "has 1 tensors in 1 file, expected 4");
}

TEST(any_shard_opens_the_set) {
    const Folder folder;
    const auto shards = halves();
    const std::string first = folder.write("m-00001-of-00002.gguf", shards[0]);
    CHECK_THROWS(GgufFile::open(first), "[gguf] m-00002-of-00002.gguf: missing of the 2 shards of the model");
    const std::string second = folder.write("m-00002-of-00002.gguf", shards[1]);
    for (const std::string& path : {first, second}) {
        const auto file = GgufFile::open(path);
        CHECK_EQ(file->tensors().size(), 2u);
        CHECK_EQ(file->name(), "m-00001-of-00002.gguf");
        CHECK_EQ(file->path(), first);
        file->require_unchanged();
    }
    const auto file = GgufFile::open(first);
    std::filesystem::resize_file(second, 100);
    CHECK_THROWS(file->require_unchanged(), "m-00002-of-00002.gguf: was changed or shortened");
    CHECK_THROWS(GgufFile::open(first), "[gguf] m-00002-of-00002.gguf: ");
    CHECK_THROWS(GgufFile::open(folder.write("renamed.gguf", shards[1])),
                 "is shard 2 of 2 (split.no, split.count), expected a name that ends with "
                 "-00002-of-00002.gguf");
    CHECK_THROWS(GgufFile::open(folder.write("m-00001-of-00005.gguf", halves(5)[0])),
                 "[gguf] m-00002-of-00005.gguf, m-00003-of-00005.gguf, m-00004-of-00005.gguf and 1 more: "
                 "missing of the 5 shards");
}
