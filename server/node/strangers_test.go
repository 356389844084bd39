package node_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	replicated "github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// deaf is a node that answers nobody.
type deaf struct{ transport.Handler }

func (deaf) ReportUnreachable(uint64)                    {}
func (deaf) ReportGone(uint64, uint64)                   {}
func (deaf) ReportRefused(uint64)                        {}
func (deaf) ReportConnected(uint64)                      {}
func (deaf) ReportReached(uint64)                        {}
func (deaf) ReportRejected(uint64, *transport.Rejection) {}

// stranger is a node that says that it is a member of a group.
func stranger(t *testing.T, id transport.Identity, addr string) *transport.Peers {
	t.Helper()
	p, err := transport.New(transport.Options{Listen: "127.0.0.1:0", Advertise: addr, Identity: id, LogFormat: replicated.LogFormat, AllowPlaintext: true}, deaf{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// groupOf is the group that a node tells everybody of.
func groupOf(t *testing.T, m *member) (id transport.GroupID) {
	t.Helper()
	text := must(adminOf(t, m).Status(signedIn("root", "secret"), &triremev1.AdminStatusRequest{})).GetGroup().GetId()
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != len(id) {
		t.Fatalf("the group %q: %v", text, err)
	}
	return transport.GroupID(b)
}

// TestStrangersHandNothingOver: a node that says that it is a member gets no session of the leader, and nothing else that members may ask for:
// it is one if the group knows it.
func TestStrangersHandNothingOver(t *testing.T) {
	m := alone(t)
	eventually(t, "log in", open(t, m.MainAddr()).Ping)
	g := groupOf(t, m)
	payload := must(json.Marshal(map[string]any{"user": "root", "host": "127.0.0.1", "account_user": "root", "account_host": "%"}))
	for _, id := range []uint64{777, 0} {
		p := stranger(t, transport.Identity{Group: g, Member: id}, "")
		for _, kind := range []string{"node/handover", "node/leave", "node/spare"} {
			answer, err := p.Ask(context.Background(), transport.Call{Addr: peerOf(m), Kind: kind, Payload: payload, Timeout: 5 * time.Second})
			if err == nil || !strings.Contains(err.Error(), "only members") {
				t.Errorf("member %d, %s: %s %v", id, kind, answer, err)
			}
		}
	}
}

// peerOf is where a node listens for others.
func peerOf(m *member) string {
	for _, a := range m.args {
		if at, ok := strings.CutPrefix(a, "--peer-address="); ok {
			return at
		}
	}
	return ""
}

// TestNobodyTalksToOneAlone: a node for which nothing is said of how members prove who they are takes none, of this machine neither.
func TestNobodyTalksToOneAlone(t *testing.T) {
	peer := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	settings := slices.DeleteFunc(args(t, t.TempDir(), []string{peer}, peer), func(a string) bool { return a == "--peer-allow-plaintext" })
	m, err := start(t, settings)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "log in", open(t, m.MainAddr()).Ping)
	p := stranger(t, transport.Identity{Group: groupOf(t, m)}, "")
	if answer, err := p.Ask(context.Background(), transport.Call{Addr: peer, Kind: "node/about", Timeout: 3 * time.Second}); err == nil {
		t.Errorf("it answers: %s", answer)
	}
	if c, err := net.Dial("tcp", peer); err == nil {
		_ = c.Close()
	}
	m.stop()
	if m, err = start(t, settings); err != nil { // with another certificate
		t.Fatal(err)
	}
	eventually(t, "log in again", open(t, m.MainAddr()).Ping)
}
