#pragma once

#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// A test is a named function; a failed check throws, so the rest of its test is not run.
namespace strata::test {

struct Case {
    const char* name;
    std::function<void()> body;
};
inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}
struct Register {
    Register(const char* name, std::function<void()> body) { cases().push_back({name, std::move(body)}); }
};
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
    std::ostringstream text;
    text << file << ":" << line << ": " << what;
    throw Failure(text.str());
}

template <typename A, typename B>
void check_eq(const A& a, const B& b, const char* text, const char* file, int line) {
    if (a == b) return;
    std::ostringstream what;
    what << text << ": " << a << " != " << b;
    fail(file, line, what.str());
}

inline void check_near(double a, double b, double tolerance, const char* text, const char* file, int line) {
    if (std::abs(a - b) <= tolerance) return;  // false for NaN
    std::ostringstream what;
    what << text << ": " << a << " is not within " << tolerance << " of " << b;
    fail(file, line, what.str());
}

template <typename F>
void check_throws(F&& body, const std::string& expected, const char* file, int line) {
    try {
        body();
    } catch (const std::exception& error) {
        if (std::string(error.what()).find(expected) != std::string::npos) return;
        fail(file, line, std::string("threw \"") + error.what() + "\", expected \"" + expected + "\"");
    }
    fail(file, line, "threw nothing, expected \"" + expected + "\"");
}

}  // namespace strata::test

#define TEST(name)                                                       \
    static void test_##name();                                           \
    static ::strata::test::Register register_##name(#name, test_##name); \
    static void test_##name()
#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) ::strata::test::fail(__FILE__, __LINE__, #condition); \
    } while (false)
#define CHECK_EQ(a, b) ::strata::test::check_eq((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, tolerance) \
    ::strata::test::check_near((a), (b), (tolerance), #a " near " #b, __FILE__, __LINE__)
#define CHECK_THROWS(expression, text) \
    ::strata::test::check_throws([&] { (void)(expression); }, (text), __FILE__, __LINE__)
