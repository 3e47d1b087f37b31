#include <cstdio>
#include <cstring>

#include "check.h"

/// strata_tests [PART OF A NAME]: runs the tests whose name contains it.
int main(int argc, char** argv) {
    const char* part = argc > 1 ? argv[1] : "";
    int passed = 0, failed = 0;
    for (const auto& test : strata::test::cases()) {
        if (!std::strstr(test.name, part)) continue;
        try {
            test.body();
            ++passed;
        } catch (const std::exception& error) {
            ++failed;
            std::printf("FAILED %s\n  %s\n", test.name, error.what());
        }
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
