#include "device/appointment.h"

#include <list>
#include <thread>

#include "base/clock.h"
#include "check.h"
#include "device/pace.h"
#include "device/team.h"

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
    bool passed = false;
    std::thread([&passed] { passed = Appointment::let_pass(); }).join();  // each thread for itself
    CHECK(passed);
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

TEST(a_courteous_team_lets_pass_between_two_operations) {
    const auto meet = [](const Member& me) { me.meet(); };
    for (const auto manner : {Team::Manner::plain, Team::Manner::courteous}) {
        Team team(1, {}, manner);  // of the calling thread alone
        Appointment appointment;
        appointment.make(now_ns());
        team.run(meet);
        CHECK_EQ(Appointment::let_pass(), manner == Team::Manner::plain);
    }
}

TEST(who_is_held_has_an_appointment_until_it_is_over) {
    PaceSpec spec;
    spec.kind = PaceSpec::Kind::even;
    const auto pace = Pace::make(spec, 0);
    const uint64_t far = now_ns() + 60'000'000'000;
    bool whole = true;
    std::thread held([&] { whole = pace->sleep_until(far, ProgramKind::forward, 1); });
    while (Appointment::earliest_ns() == 0) std::this_thread::yield();
    CHECK(Appointment::earliest_ns() < far);  // it is to be back a moment before
    pace->cut(1, false);
    held.join();
    CHECK(!whole);
    CHECK_EQ(Appointment::earliest_ns(), 0u);
}
