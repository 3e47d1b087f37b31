#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "model/gguf.h"

namespace strata {

namespace {

constexpr int64_t MAX_SHARDS = 65535;  // split.count is a uint16

/// "-00001-of-00003.gguf" for shard 0 of 3.
std::string shard_suffix(int64_t shard, int64_t count) {
    char text[64];
    std::snprintf(text, sizeof text, "-%05lld-of-%05lld.gguf", static_cast<long long>(shard + 1),
                  static_cast<long long>(count));
    return text;
}

[[noreturn]] void fail_missing(const std::vector<std::string>& names, int64_t count) {
    std::string all = shown(names[0]);
    for (size_t i = 1; i < std::min<size_t>(names.size(), 3); ++i) all += ", " + shown(names[i]);
    if (names.size() > 3) all += " and " + std::to_string(names.size() - 3) + " more";
    throw Error("[gguf] " + all + ": missing of the " + std::to_string(count) + " shards of the model");
}

}  // namespace

std::shared_ptr<GgufFile> GgufFile::open_one(const std::string& path) {
    std::shared_ptr<GgufFile> file(new GgufFile());
    file->path_ = path;
    file->name_ = path.substr(path.find_last_of('/') + 1);
    file->mapping_ = MappedFile(path);
    file->bytes_ = file->mapping_.bytes();
    try {
        file->read_all();
    } catch (const Error&) {
        file->require_unchanged();  // the better reason
        throw;
    }
    file->require_unchanged();
    return file;
}

std::shared_ptr<GgufFile> GgufFile::parse_one(std::span<const uint8_t> bytes, const std::string& name) {
    std::shared_ptr<GgufFile> file(new GgufFile());
    file->path_ = file->name_ = name;
    file->bytes_ = bytes;
    file->read_all();
    return file;
}

int64_t GgufFile::n_shards() const {
    return std::max<int64_t>(1, integer_or("split.count", 1, 0, MAX_SHARDS));
}

std::shared_ptr<const GgufFile> GgufFile::open(const std::string& path) {
    std::shared_ptr<GgufFile> opened = open_one(path);
    const int64_t count = opened->n_shards();
    if (count == 1) return join({opened});

    const int64_t at = opened->integer("split.no", 0, count - 1);
    const std::string suffix = shard_suffix(at, count);
    if (!path.ends_with(suffix))
        opened->fail("is shard " + std::to_string(at + 1) + " of " + std::to_string(count) +
                     " (split.no, split.count), expected a name that ends with " + suffix);
    const std::string prefix = path.substr(0, path.size() - suffix.size());
    std::vector<std::string> absent;
    for (int64_t i = 0; i < count; ++i) {
        const std::string other = prefix + shard_suffix(i, count);
        std::error_code ignored;
        if (i != at && !std::filesystem::exists(other, ignored))
            absent.push_back(other.substr(other.find_last_of('/') + 1));
    }
    if (!absent.empty()) fail_missing(absent, count);
    std::vector<std::shared_ptr<GgufFile>> shards;
    for (int64_t i = 0; i < count; ++i)
        shards.push_back(i == at ? opened : open_one(prefix + shard_suffix(i, count)));
    return join(std::move(shards));
}

std::shared_ptr<const GgufFile> GgufFile::parse(std::span<const uint8_t> bytes, const std::string& name) {
    return join({parse_one(bytes, name)});
}

std::shared_ptr<const GgufFile> GgufFile::parse_set(const std::vector<std::span<const uint8_t>>& shards) {
    std::vector<std::shared_ptr<GgufFile>> parsed;
    for (const auto& bytes : shards)
        parsed.push_back(parse_one(bytes, "shard " + std::to_string(parsed.size() + 1)));
    return join(std::move(parsed));
}

std::shared_ptr<const GgufFile> GgufFile::join(std::vector<std::shared_ptr<GgufFile>> shards) {
    const auto first = shards[0];
    const auto count = static_cast<int64_t>(shards.size());
    if (first->n_shards() != count)
        first->fail("is one of " + std::to_string(first->n_shards()) + " shards (split.count), expected " +
                    std::to_string(count));
    for (int64_t i = 0; i < count && count > 1; ++i) {
        shards[i]->integer("split.count", count, count);
        shards[i]->integer("split.no", i, i);
    }
    const int64_t announced = first->integer_or("split.tensors.count", -1, 0, INT64_MAX);
    for (int64_t i = 1; i < count; ++i) {
        GgufFile& shard = *shards[i];
        for (Tensor& tensor : shard.tensors_) {
            tensor.shard = static_cast<int>(i);
            const auto [at, is_new] = first->tensor_index_.try_emplace(tensor.name, first->tensors_.size());
            if (!is_new)
                shard.fail("tensor " + shown(tensor.name) + " stands in " +
                           shown(shards[first->tensors_[at->second].shard]->name_) + " too");
            first->tensors_.push_back(tensor);
        }
        first->more_.push_back(shards[i]);
    }
    const auto found = static_cast<int64_t>(first->tensors_.size());
    if (announced >= 0 && announced != found)
        first->fail("has " + std::to_string(found) + " tensors in " + std::to_string(count) +
                    (count == 1 ? " file" : " shards") + ", expected " + std::to_string(announced) +
                    " (split.tensors.count)");
    return first;
}

uint64_t GgufFile::size_bytes() const {
    uint64_t size = bytes_.size();
    for (const auto& shard : more_) size += shard->bytes_.size();
    return size;
}

}  // namespace strata
