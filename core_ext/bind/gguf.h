#pragma once

#include <memory>

#include "model/gguf.h"

/// What Python holds of a model file: its mapping lives as long as this or an engine does.
struct ModelFileHandle {
    std::shared_ptr<const strata::GgufFile> file;
};
