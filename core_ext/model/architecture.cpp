#include "model/architecture.h"

#include <array>
#include <mutex>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/draft_file.h"

namespace strata {

namespace {

struct Known {
    const char* name;
    std::unique_ptr<Architecture> (*load)(ModelFiles);
    std::array<const char*, 2>
        reordered{};  // ends of the names of tensors that it asks GgufFile::reordered for
};

constexpr Known KNOWN[] = {
    {"llama", load_llama},      {"internlm2", load_llama},
    {"ernie4_5", load_llama},   {"smollm3", load_smollm3},
    {"qwen2", load_qwen2},      {"qwen2moe", load_qwen2},
    {"seed_oss", load_qwen2},   {"qwen3", load_qwen3},
    {"qwen3moe", load_qwen3},   {"qwen35", load_qwen35},
    {"qwen35moe", load_qwen35}, {"qwen3next", load_qwen3next, {".ssm_in.weight", ".ssm_ba.weight"}},
};

constexpr int64_t MAX_VOCAB = 1 << 24;  // far above any model's

/// The copies that one load asks its files for: made when it knows them all, forgotten if it fails.
class CopiesOfLoad {
  public:
    explicit CopiesOfLoad(const ModelFiles& files) : lock_(one_at_a_time()), files_(files) {}
    ~CopiesOfLoad() {
        for (const GgufFile* file : files()) file->copies().forget_asked();
    }

    void make() {
        require_memory();
        for (const GgufFile* file : files()) file->copies().make();
    }

  private:
    // What a load asks for must not be forgotten by another that fails.
    static std::mutex& one_at_a_time() {
        static std::mutex mutex;
        return mutex;
    }
    std::vector<const GgufFile*> files() const {
        std::vector<const GgufFile*> both{files_.model.get()};
        if (files_.draft && files_.draft != files_.model) both.push_back(files_.draft.get());
        return both;
    }
    void require_memory() const {
        uint64_t stored = 0, needed = 0;
        for (const GgufFile* file : files()) {
            const TensorCopies::Asked asked = file->copies().asked();
            stored += asked.stored_bytes;
            needed += asked.memory_bytes;
        }
        if (needed == 0) return;
        if (const uint64_t available = available_memory(); needed > available)
            files_.model->fail("needs " + std::to_string(needed >> 20) + " MiB of memory for copies of " +
                               std::to_string(stored >> 20) +
                               " MiB of tensors that can't be run as they lie in the file" +
                               (files_.draft ? " or in " + shown(files_.draft->name()) : "") + ", " +
                               std::to_string(available >> 20) + " MiB are available");
    }

    const std::lock_guard<std::mutex> lock_;
    const ModelFiles files_;
};

}  // namespace

float* Workspace::overflow() {
    bug("[workspace] an architecture asked for more scratch than scratch_floats says");
}

DeltaRecord DeltaShape::record_at(float* base, int rows) const {
    DeltaRecord record;
    record.u = base;
    record.k = record.u + int64_t{rows} * channels();
    record.v = record.k + int64_t{rows} * n_k_heads * k_dim;
    record.decay = record.v + int64_t{rows} * n_v_heads * v_dim;
    record.beta = record.decay + int64_t{rows} * n_v_heads;
    return record;
}

std::vector<std::string> Architecture::known() {
    std::vector<std::string> names;
    for (const Known& known : KNOWN) names.push_back(known.name);
    return names;
}

bool Architecture::reorders(const GgufFile& file, const Tensor& tensor) {
    const GgufValue* value = file.find("general.architecture");
    const auto* name = value ? std::get_if<std::string_view>(value) : nullptr;
    for (const Known& known : KNOWN)
        if (name && *name == known.name)
            for (const char* end : known.reordered)
                if (end && tensor.name.ends_with(end)) return true;
    return false;
}

std::unique_ptr<Architecture> Architecture::load(ModelFiles files) {
    const GgufFile& file = *files.model;
    const std::string name(file.text("general.architecture"));
    for (const Known& known : KNOWN)
        if (name == known.name) {
            if (files.draft) require_draft_of(file, *files.draft);
            CopiesOfLoad copies(files);
            auto model = known.load(files);
            copies.make();
            return model;
        }
    std::string names;
    for (const Known& known : KNOWN) names += (names.empty() ? "" : ", ") + std::string(known.name);
    const char* why =
        name == "qwen4exp" ? " (hyper-connections, sparse attention, n-gram tables) is not supported" : "";
    throw Error("[model] " + shown(file.name()) + ": architecture " + shown(name) + why +
                ", expected one of " + names);
}

Architecture::Architecture(ModelFiles files)
    : file_(std::move(files.model)),
      draft_file_(std::move(files.draft)),
      name_(file_->text("general.architecture")) {
    read_lengths(*file_, name_, dims_);
    read_widths(*file_, name_, dims_);
    rope_ = read_rope(*file_, name_, dims_.n_rot);
    read_tensors();
}

void Architecture::read_tensors() {
    const GgufFile& file = *file_;
    const Tensor* table = file.tensor("token_embd.weight");
    if (!table) file.fail("tensor token_embd.weight is missing");
    if (table->shape.size() != 2 || table->shape[1] < 1 || table->shape[1] > MAX_VOCAB)
        file.fail("tensor token_embd.weight should have the shape [" + std::to_string(dims_.n_embd) +
                  ", tokens], 1 to " + std::to_string(MAX_VOCAB) + " tokens");
    dims_.n_vocab = static_cast<int>(table->shape[1]);
    embedding_ = file.weight("token_embd.weight", dims_.n_embd, dims_.n_vocab);
    head_ = file.weight("output.weight", dims_.n_embd, dims_.n_vocab, true);
    if (!head_) head_ = embedding_;
    output_norm_ = file.vector("output_norm.weight", dims_.n_embd);
}

}  // namespace strata
