package adminapi

import (
	"strings"
	"testing"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// A learner that is not well is not to be counted on, and a voter is not spared where those that are left have full disks.
func TestCountsOnMembersThatAreWell(t *testing.T) {
	const online, away = triremev1.AdminMemberState_ADMIN_MEMBER_STATE_ONLINE, triremev1.AdminMemberState_ADMIN_MEMBER_STATE_UNREACHABLE
	check := func(what string, err error, want string) {
		t.Helper()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	for _, c := range []struct {
		what string
		m    *triremev1.AdminMember
		want string
	}{
		{"a learner", &triremev1.AdminMember{State: online}, ""},
		{"with a full disk", &triremev1.AdminMember{State: online, DiskFull: true}, "it has a full disk"},
		{"whose disk hangs", &triremev1.AdminMember{State: online, Error: "it has a disk that has not answered for 9s"}, "not answered for 9s"},
		{"away", &triremev1.AdminMember{State: away, Error: "no connection"}, "does not answer"},
		{"behind", &triremev1.AdminMember{State: online, LagEntries: behindMax + 1}, "entries behind"},
	} {
		check(c.what, canVote(c.m), c.want)
	}
	voter := func(id uint64, state triremev1.AdminMemberState, full bool) *triremev1.AdminMember {
		return &triremev1.AdminMember{Id: id, Role: triremev1.AdminRole_ADMIN_ROLE_FOLLOWER, State: state, DiskFull: full}
	}
	for _, c := range []struct {
		what    string
		members []*triremev1.AdminMember
		want    string
	}{
		{"all are well", []*triremev1.AdminMember{voter(1, online, false), voter(2, online, false), voter(3, online, false)}, ""},
		{"who goes is full", []*triremev1.AdminMember{voter(1, online, true), voter(2, online, false), voter(3, online, false)}, ""},
		{"one of two that are left is full", []*triremev1.AdminMember{voter(1, online, false), voter(2, online, true), voter(3, online, false)}, "only 1 of 2 voters have room"},
		{"one of two that are left is away", []*triremev1.AdminMember{voter(1, online, false), voter(2, away, false), voter(3, online, false)}, "only 1 of 2 voters answer"},
	} {
		check(c.what, canSpare(1, c.members), c.want)
	}
}
