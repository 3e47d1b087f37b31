#include "device/appointment.h"

#include <list>
#include <thread>

#include "base/clock.h"
#include "check.h"

using namespace strata;

TEST(others_pass_once_where_an_appointment_is_due) {
    Appointment appointment;
    appointment.make(now_ns());
    CHECK(Appointment::let_pass());
    CHECK(!Appointment::let_pass());  // it has been let pass
    appointment.make(now_ns() + 60'000'000'000);
    CHECK(!Appointment::let_pass());
    appointment.make(now_ns());
    CHECK(Appointment::let_pass());
    appointment.make(now_ns());
    appointment.keep();
    CHECK(!Appointment::let_pass());
    appointment.make(now_ns());
    std::thread([] { CHECK(Appointment::let_pass()); }).join();  // each thread for itself
}

TEST(appointments_give_their_places_back) {
    for (int i = 0; i < 200; ++i) {
        Appointment appointment;
        appointment.make(now_ns());
        CHECK(Appointment::let_pass());
    }
    CHECK(!Appointment::let_pass());
}

TEST(an_appointment_without_a_place_is_nobodys_concern) {
    std::list<Appointment> all(200);  // more than there are places
    all.back().make(now_ns());
    CHECK(!Appointment::let_pass());
    all.front().make(now_ns());
    CHECK(Appointment::let_pass());
}
