package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	replication "github.com/triremedb/trireme/replication/group"
)

// removed waits until a member knows that it was removed.
func (m *member) removed(t *testing.T) {
	t.Helper()
	eventually(t, "a member that has left is told so", func() error {
		if err := m.Err(); !errors.Is(err, replication.ErrRemoved) {
			return fmt.Errorf("it stands: %v", err)
		}
		return nil
	})
}

// again starts a member with its directory as it is.
func (m *member) again(t *testing.T) *member {
	t.Helper()
	m.stop()
	a, err := start(t, m.args)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestScaledAwayAndBack: a pod that comes back before its claim was deleted, whose member has left meanwhile, joins as a new
// member. Where claims are kept its data are as well, and an event says what to do.
func TestScaledAwayAndBack(t *testing.T) {
	for _, deleted := range []bool{true, false} {
		t.Run(fmt.Sprintf("deleted=%v", deleted), func(t *testing.T) {
			t.Parallel()
			k, settings := newKubernetes(t)
			k.claims = []string{"data-db-1", "data-db-2"}
			k.setBusy(true) // claims stay
			k.say(`{"spec": {"replicas": 3}}`)
			members := pods(t, 3, append(settings, fmt.Sprintf("--kubernetes-delete-claims=%v", deleted))...)
			for _, m := range members[1:] {
				m.transfer(t, members[:1])
			}
			leaderOf(t, members[:1])
			execAll(t, open(t, members[0].MainAddr()), "CREATE DATABASE kept")
			was := members[2].report(t).Member
			k.say(`{"spec": {"replicas": 1}}`)
			members[2].stop()
			members[1].stop()
			eventually(t, "one member", func() error {
				if r := members[0].report(t); len(r.Members) != 1 {
					return fmt.Errorf("%+v", r.Members)
				}
				return nil
			})
			k.say(`{"spec": {"replicas": 3}}`)
			for i := range members {
				if i == 0 {
					continue
				}
				members[i] = members[i].again(t)
				members[i].removed(t)
				members[i] = members[i].again(t)
			}
			if !deleted {
				if _, text := k.said(t, "MemberLeft"); !strings.Contains(text, "delete the claim data-db-") || !strings.Contains(text, "and the pod, and it joins") {
					t.Error(text)
				}
				members[2].removed(t)
				if slices.Contains(k.has(), "MemberRejoins") {
					t.Errorf("%q", k.has())
				}
				return
			}
			if _, text := k.said(t, "MemberRejoins"); !strings.Contains(text, fmt.Sprintf("member %d, which pod db-2", was)) {
				t.Error(text)
			}
			eventually(t, "three members", func() error {
				online := 0
				for _, m := range members[0].report(t).Members {
					if m.State == "ONLINE" && m.ID != was {
						online++
					}
				}
				if r := members[2].report(t); online != 3 || r.Member == was || r.Status.Provisioning {
					return fmt.Errorf("%+v", members[0].report(t).Members)
				}
				return nil
			})
			execAll(t, open(t, members[2].ReadAddr()), "USE kept")
		})
	}
}

// TestApartIsTold: a member that may have been removed, and cannot be certain, says so by an event.
func TestApartIsTold(t *testing.T) {
	t.Parallel()
	k, settings := newKubernetes(t)
	k.say(`{"spec": {"replicas": 0}}`) // so that nobody leaves
	members := pods(t, 3, settings...)
	lead := slices.IndexFunc(members, func(m *member) bool { return m.Leads() })
	away, other := members[(lead+1)%3], members[(lead+2)%3]
	ids := []uint64{away.report(t).Member, other.report(t).Member}
	away.stop()
	for _, id := range ids {
		eventually(t, fmt.Sprintf("member %d is removed", id), func() error {
			_, err := adminOf(t, members[lead]).RemoveMember(signedIn("root", "secret"), &triremev1.AdminRemoveMemberRequest{Id: id})
			return err
		})
	}
	other.stop()
	away.again(t)
	if _, text := k.said(t, "MemberApart"); !strings.Contains(text, fmt.Sprintf("member %d at ", ids[0])) || !strings.Contains(text, "may have been removed") {
		t.Error(text)
	}
}
