#include "model/gguf.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include "base/error.h"
#include "check.h"
#include "gguf_bytes.h"
#include "model/draft_file.h"

using namespace strata;
using namespace strata::test;

namespace {

std::shared_ptr<const GgufFile> parse(const Bytes& file) { return GgufFile::parse(file.bytes, "t.gguf"); }

/// Where the length of the first of "tokens" stands in whole().
size_t first_length(const Bytes& bytes) {
    const std::string_view all(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size());
    return all.find("tokens") + std::strlen("tokens") + 4 + 4 + 8;
}

/// whole() on disk, written to after it was opened.
struct Rewritten {
    std::string path = "/tmp/strata_gguf_XXXXXX";
    std::shared_ptr<const GgufFile> file;
    Rewritten() {
        const Bytes bytes = whole();
        const int fd = ::mkstemp(path.data());
        CHECK(::write(fd, bytes.bytes.data(), bytes.bytes.size()) == std::ssize(bytes.bytes));
        file = GgufFile::open(path);
        const uint64_t length = uint64_t{1} << 40;
        const auto at = static_cast<off_t>(first_length(bytes));
        CHECK(::pwrite(fd, &length, sizeof length, at) == static_cast<ssize_t>(sizeof length));
        const timespec later[2] = {{2'000'000'000, 0}, {2'000'000'000, 0}};  // the clock may be coarse
        CHECK(::futimens(fd, later) == 0);
        ::close(fd);
    }
    ~Rewritten() { std::remove(path.c_str()); }
};

}  // namespace

TEST(gguf_lengths_that_changed_since_they_were_checked_are_checked_again) {
    Bytes bytes = whole();
    const auto file = parse(bytes);
    const size_t at = first_length(bytes);
    for (const uint64_t length : {uint64_t{1000}, uint64_t{1} << 40, UINT64_MAX}) {
        std::memcpy(bytes.bytes.data() + at, &length, sizeof length);
        CHECK_THROWS(file->texts("tokens"), "[gguf] t.gguf: key tokens at offset 8 needs");
    }
}

TEST(gguf_written_to_while_it_is_open_is_refused) {
    const Rewritten other;
    const char* why = "was changed or shortened while it was open; open it again";
    CHECK_THROWS(other.file->texts("tokens"), why);
    const Bytes bytes = whole();
    const auto same = parse(bytes);
    CHECK_THROWS(require_draft_of(*same, *other.file), why);
    CHECK_THROWS(require_draft_of(*other.file, *same), why);
}

TEST(gguf_reads_what_was_written) {
    for (const uint32_t version : {2u, 3u}) {
        Bytes bytes = whole();
        bytes.bytes[4] = static_cast<uint8_t>(version);
        const auto file = parse(bytes);
        CHECK_EQ(file->version(), version);
        CHECK_EQ(file->alignment(), 32u);
        CHECK_EQ(file->keys().size(), 5u);
        CHECK_EQ(file->keys()[4], "eps");
        CHECK_EQ(file->text("general.architecture"), "llama");
        CHECK_EQ(file->integer("llama.block_count", 1, 100), 7);
        CHECK_EQ(file->integer_or("absent", -3, -10, 10), -3);
        CHECK_NEAR(file->number_or("eps", 0), 0.5, 0);
        CHECK_NEAR(file->number_or("llama.block_count", 0), 7, 0);
        CHECK_EQ(file->texts("tokens").size(), 3u);
        CHECK_EQ(file->texts("tokens")[2], "\xff\xfe");
        CHECK(file->integers("flags", 2) == std::vector<int64_t>({1, 0}));
        CHECK(file->integers("llama.block_count", 0) == std::vector<int64_t>({7}));
        CHECK(file->integers("absent", 0).empty());

        const cpu::Weight w = file->weight("w", 4, 3);
        CHECK(w.type == Type::F32);
        CHECK_EQ(w.row_bytes, 16u);
        CHECK_EQ(static_cast<const uint8_t*>(w.data)[47], 47);
        CHECK_EQ(static_cast<const uint8_t*>(file->weight("q", 32, 1).data)[0], 64);
        CHECK(!file->weight("absent", 4, 3, true));
        CHECK_EQ(file->tensor("q")->size_bytes, 34u);
        CHECK(file->tensor("absent") == nullptr);
    }
}

TEST(gguf_typed_reads_name_key_expected_and_came) {
    const Bytes bytes = whole();
    const auto file = parse(bytes);
    CHECK_THROWS(file->integer("absent", 1, 9), "[gguf] t.gguf: key absent is missing, expected 1 to 9");
    CHECK_THROWS(file->integer("llama.block_count", 8, 9), "key llama.block_count holds 7, expected 8 to 9");
    CHECK_THROWS(file->integer("eps", 0, 9), "key eps holds a float, expected 0 to 9");
    CHECK_THROWS(file->text("eps"), "key eps holds a float, expected a string");
    CHECK_THROWS(file->text("absent"), "key absent is missing, expected a string");
    CHECK_THROWS(file->texts("flags"),
                 "key flags holds an array of 2 x boolean, expected an array of strings");
    CHECK_THROWS(file->number_or("tokens", 0), "holds an array of 3 x string, expected a number");
    CHECK_THROWS(file->integers("flags", 1), "key flags holds 2 elements, expected at most 1");
    CHECK_THROWS(file->integers("tokens", 9), "holds an array of 3 x string, expected integers");
    CHECK_THROWS(file->weight("w", 3, 4), "tensor w has shape [4, 3], expected [3, 4]");
    CHECK_THROWS(file->weight("w", 4, 2), "tensor w has shape [4, 3], expected [4, 2]");
    CHECK_THROWS(file->weight("absent", 4, 3), "tensor absent is missing");

    const Bytes large = header(0, 2)
                            .key("n", GgufType::U64)
                            .u64(UINT64_MAX)
                            .key("inf", GgufType::F64)
                            .put(std::numeric_limits<double>::infinity());
    const auto numbers = parse(large);
    CHECK_THROWS(numbers->integer("n", 0, 9), "key n holds 18446744073709551615, expected 0 to 9");
    CHECK_THROWS(numbers->number_or("inf", 0), "key inf is not finite");
}

TEST(gguf_refuses_what_is_no_gguf) {
    CHECK_THROWS(parse({}), "[gguf] t.gguf: header at offset 0 needs 4 bytes, file has 0 left");
    CHECK_THROWS(parse(Bytes().raw("GGML").u32(3)),
                 "is no GGUF file: it begins with 47 47 4d 4c instead of 47 47 55 46");
    CHECK_THROWS(parse(header(0, 0, 1)), "has version 1, expected 2 or 3");
    CHECK_THROWS(parse(header(0, 0, 4)), "has version 4, expected 2 or 3");
    CHECK_THROWS(parse(header(0, 0, 0)), "has version 0, expected 2 or 3");
    CHECK_THROWS(parse(header(0, 0, 0x03000000)), "is big-endian, expected little-endian");
    CHECK_THROWS(GgufFile::open("/nowhere/x.gguf"), "[open] /nowhere/x.gguf: No such file");
    CHECK_THROWS(GgufFile::open("/"), "is a folder, expected a file");
    CHECK_THROWS(GgufFile::open("/dev/null"), "is not a regular file");
}

TEST(gguf_accepts_a_file_without_keys_and_tensors) {
    const Bytes empty = header(0, 0);
    CHECK(parse(empty)->tensors().empty());
    const Bytes only_keys = header(0, 1).key("a", GgufType::I8).put<int8_t>(-1);
    CHECK_EQ(parse(only_keys)->integer("a", -1, 0), -1);
}

TEST(gguf_refuses_counts_beyond_the_file) {
    CHECK_THROWS(parse(header(0, UINT64_MAX)),
                 "header announces 18446744073709551615 keys, file has 0 bytes left");
    CHECK_THROWS(parse(header(UINT64_MAX - 1, 0)), "header announces 18446744073709551614 tensors");
    // More than any file has would cost far more memory than it has bytes.
    CHECK_THROWS(parse(header(0, 100'000).raw(std::string(1'500'000, '\0'))),
                 "header announces 100000 keys, expected at most 65536");
    CHECK_THROWS(parse(header(2'000'000, 0).raw(std::string(50'000'000, '\0'))),
                 "header announces 2000000 tensors, expected at most 1048576");
    const auto with = [](GgufType element, uint64_t count) {
        return parse(header(0, 1).key("a", GgufType::ARRAY).array(element, count).u64(0));
    };
    CHECK_THROWS(with(GgufType::STRING, 2), "key \"a\" announces 2 strings, file has 8 bytes left");
    CHECK_THROWS(with(GgufType::STRING, UINT64_MAX / 8 + 2), "strings, file has 8 bytes left");
    CHECK_THROWS(with(GgufType::U64, (UINT64_MAX / 8) + 2), "array elements, file has 8 bytes left");
    CHECK_THROWS(with(GgufType::F32, 3), "announces 3 array elements");
    CHECK_THROWS(with(GgufType::ARRAY, 1), "announces 1 arrays");
    CHECK_THROWS(with(GgufType::BOOL, 9), "announces 9 booleans");
    CHECK_THROWS(parse(header(0, 1).u64(UINT64_MAX - 3).u64(0)),
                 "key 0 at offset 32 needs 18446744073709551612 bytes, file has 8 left");
}

TEST(gguf_refuses_hostile_keys) {
    const auto two = [] {
        return header(0, 2).key("a", GgufType::U8).put<uint8_t>(1).key("a", GgufType::U8).put<uint8_t>(1);
    };
    CHECK_THROWS(parse(two()), "key \"a\" appears twice");
    CHECK_THROWS(parse(header(0, 1).key("", GgufType::U64).u64(0)),
                 "key 0 has a name of 0 bytes, expected 1 to 65535");
    CHECK_THROWS(parse(header(0, 1).key(std::string(65536, 'a'), GgufType::U64).u64(0)),
                 "has a name of 65536 bytes");
    for (const char* bad : {"\xff", "a\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\x80", "\xe2\x82"})
        CHECK_THROWS(parse(header(0, 1).key(bad, GgufType::U64).u64(0)),
                     "key 0 has a name that is not UTF-8");
    for (const char* good :
         {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
        const Bytes bytes = header(0, 1).key(good, GgufType::U64).u64(1);
        CHECK_EQ(parse(bytes)->keys()[0], good);
    }
    CHECK_THROWS(parse(header(0, 1).text("a").u32(13).u64(0)), "key \"a\" has the unknown value type 13");
    CHECK_THROWS(parse(header(0, 1).key("a", GgufType::ARRAY).u32(77).u64(0)),
                 "is an array of the unknown value type 77");
    CHECK_THROWS(parse(header(0, 1).key("a", GgufType::BOOL).put<uint8_t>(2).u64(0)),
                 "holds the boolean 2, expected 0 or 1");
    CHECK_THROWS(parse(header(0, 1).key("a\x1b[2J\n", GgufType::BOOL).put<uint8_t>(2).u64(0)),
                 "key \"a?[2J?\" holds");
}

TEST(gguf_reads_nested_arrays_to_a_bounded_depth) {
    Bytes nested = header(0, 1).key("a", GgufType::ARRAY);
    for (int depth = 0; depth < 3; ++depth) nested.array(GgufType::ARRAY, 1);
    nested.array(GgufType::U8, 2).put<uint8_t>(1).put<uint8_t>(2);
    CHECK_EQ(parse(nested)->keys().size(), 1u);
    CHECK_THROWS(parse(nested)->integers("a", 9), "holds an array of 1 x array, expected integers");

    Bytes deep = header(0, 1).key("a", GgufType::ARRAY);
    for (int depth = 0; depth < 100000; ++depth) deep.array(GgufType::ARRAY, 1);
    CHECK_THROWS(parse(deep), "key \"a\" nests arrays more than 4 deep");
}

TEST(gguf_refuses_bad_alignments) {
    const auto aligned = [](uint32_t n) {
        return header(1, 1)
            .key("general.alignment", GgufType::U32)
            .u32(n)
            .tensor("w", {4}, 0, 0)
            .data(16, n ? n : 32);
    };
    for (const uint32_t n : {1u, 8u, 64u, 4096u}) {
        const Bytes bytes = aligned(n);
        CHECK_EQ(parse(bytes)->tensors()[0].offset % n, 0u);
        CHECK_EQ(parse(bytes)->tensors()[0].data[3], 3);
    }
    CHECK_THROWS(parse(aligned(0)), "general.alignment is 0, expected a power of two up to 1048576");
    CHECK_THROWS(parse(aligned(48)), "general.alignment is 48");
    CHECK_THROWS(parse(header(0, 1).key("general.alignment", GgufType::U64).u64(uint64_t{1} << 62)),
                 "general.alignment is 4611686018427387904");
    CHECK_THROWS(parse(header(0, 1).key("general.alignment", GgufType::U64).u64(uint64_t{1} << 63)),
                 "holds 9223372036854775808");
    CHECK_THROWS(parse(header(0, 1).key("general.alignment", GgufType::STRING).text("32")),
                 "holds a string, expected an integer");
}

TEST(gguf_refuses_hostile_tensors) {
    const auto one = [](std::vector<uint64_t> shape, uint32_t type, uint64_t offset, size_t data) {
        return parse(header(1, 0).tensor("w", std::move(shape), type, offset).data(data));
    };
    CHECK_THROWS(one({1, 1, 1, 1, 1}, 0, 0, 4), "tensor w has 5 dimensions, expected at most 4");
    CHECK_THROWS(one({UINT64_MAX}, 0, 0, 4), "tensor w has a dimension of 18446744073709551615");
    CHECK_THROWS(one({1u << 31, 1u << 31, 4}, 0, 0, 4),
                 "tensor w has the impossible shape [2147483648, 2147483648, 4]");
    CHECK_THROWS(one({0, INT64_MAX, 2}, 0, 0, 4), "tensor w has the impossible shape");
    CHECK_THROWS(one({uint64_t{1} << 62}, 0, 0, 4),
                 "tensor w has the impossible shape [4611686018427387904]");
    CHECK_THROWS(one({33}, 8, 0, 68), "tensor w has rows of 33 values, expected a multiple of 32 (Q8_0)");
    CHECK_THROWS(one({128}, 12, 0, 144),
                 "tensor w has rows of 128 values, expected a multiple of 256 (Q4_K)");
    CHECK_THROWS(one({32}, 42, 0, 100), "tensor w has the unknown type 42");
    CHECK_THROWS(one({32}, 4, 0, 100), "tensor w has the unknown type 4");
    CHECK_THROWS(one({4}, 0, 16, 64), "tensor w has offset 16, expected a multiple of 32");
    CHECK_THROWS(one({4}, 0, 0, 15), "tensor w at offset 0 of the data needs 16 bytes, file has 15 left");
    CHECK_THROWS(one({4}, 0, 32, 32), "tensor w at offset 32 of the data needs 16 bytes, file has 0 left");
    CHECK_THROWS(one({4}, 0, UINT64_MAX - 31, 64), "file has 0 left");
    CHECK_THROWS(parse(header(2, 0).tensor("w", {4}, 0, 0).tensor("w", {4}, 0, 32).data(64)),
                 "tensor w appears twice");
    CHECK_THROWS(parse(header(2, 0).tensor("a", {16}, 0, 32).tensor("b", {9}, 0, 0).data(128)),
                 "tensors b and a overlap at offset");
    CHECK_THROWS(parse(header(2, 0).tensor("a", {4}, 0, 32).tensor("b", {4}, 0, 32).data(128)), "overlap");
    CHECK_THROWS(parse(header(1, 0).tensor("\xff", {4}, 0, 0).data(16)),
                 "tensor 0 has a name that is not UTF-8");
}

TEST(gguf_accepts_empty_tensors_scalars_and_types_without_kernels) {
    const Bytes bytes = header(4, 0)
                            .tensor("none", {0, 5}, 12, 0)
                            .tensor("scalar", {}, 0, 0)
                            .tensor("whole", {110}, 24, 32)
                            .tensor("end", {0}, 0, 1 << 20)
                            .data(32 + 110);
    const auto file = parse(bytes);
    CHECK_EQ(file->tensor("none")->size_bytes, 0u);
    CHECK_EQ(file->tensor("end")->size_bytes, 0u);
    CHECK_EQ(file->tensor("scalar")->size_bytes, 4u);
    CHECK_EQ(file->tensor("whole")->size_bytes, 110u);
    CHECK_THROWS(file->weight("whole", 110, 1), "tensor whole has type I8, expected one of F32, F16, Q4_0");
}

TEST(gguf_refuses_a_file_cut_at_any_byte) {
    const Bytes bytes = whole();
    for (size_t size = 0; size < bytes.bytes.size(); ++size) {
        const std::vector<uint8_t> cut(bytes.bytes.begin(), bytes.bytes.begin() + static_cast<long>(size));
        CHECK_THROWS(GgufFile::parse(cut, "cut"), "[gguf] cut: ");
    }
    parse(bytes);
}

TEST(gguf_survives_changed_bytes) {
    std::mt19937 random(1);
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        Bytes bytes = whole();
        const size_t end = bytes.bytes.size() - 98;
        for (int change = 0; change <= round % 3; ++change)
            bytes.bytes[random() % end] =
                round % 2 ? static_cast<uint8_t>(random()) : static_cast<uint8_t>(255 * (random() % 2));
        try {
            const auto file = parse(bytes);
            for (const Tensor& tensor : file->tensors())
                CHECK(tensor.data >= bytes.bytes.data() &&
                      tensor.data + tensor.size_bytes <= bytes.bytes.data() + bytes.bytes.size());
        } catch (const Error& error) {
            CHECK(std::string(error.what()).starts_with("[gguf] t.gguf: "));
            ++refused;
        }
    }
    CHECK(refused > 1000);
}

TEST(gguf_vectors_are_float32) {
    const uint16_t halves[] = {0x3C00, 0xC000, 0x0001};          // 1, -2, 2^-24
    const uint16_t brains[] = {0x3F80, 0xC040, 0x7F7F, 0x0000};  // 1, -3, the largest, 0
    Bytes bytes = header(4, 0)
                      .tensor("f16", {3}, 1, 0)
                      .tensor("bf16", {2, 2}, 30, 32)
                      .tensor("f32", {1}, 0, 64)
                      .tensor("none", {0}, 0, 0);
    bytes.data(0);
    for (const uint16_t h : halves) bytes.put(h);
    bytes.data(0);
    for (const uint16_t b : brains) bytes.put(b);
    bytes.data(0).put(2.5f);
    const auto file = parse(bytes);
    CHECK(file->vector("f16", 3) == std::vector<float>({1, -2, 0x1p-24f}));
    CHECK(file->matrix("bf16", 2, 2) == std::vector<float>({1, -3, 0x1.fep127f, 0}));
    CHECK(file->vector("f32", 1) == std::vector<float>({2.5f}));
    CHECK(file->vector("none", 0).empty());
    CHECK(file->vector("absent", 3, true).empty());
    CHECK_THROWS(file->vector("absent", 3), "tensor absent is missing");
    CHECK_THROWS(file->vector("bf16", 4), "tensor bf16 has shape [2, 2], expected [4]");
}
