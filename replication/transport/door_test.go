package transport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// doorScript runs the commands of testdata/door:
//
//	new member=1 group=g addr=a [protocol=1,2] [log=1,1] [bulks=8]
//	peers 2=b 3=c          what SetPeers is told
//	add id=4 addr=d, remove id=4, identity member=1 group=g
//	admit from=2 addr=b group=g inc=7 [to=1] [for=ask] [protocol=1,1] [log=1,1]
//	enter name=x ...       like admit; who has to make room is named
//	leave name=x
type doorScript struct {
	t       *testing.T
	door    *Door
	leaves  map[string]func()
	evicted []string
}

func TestDoor(t *testing.T) {
	s := &doorScript{t: t, leaves: map[string]func(){}}
	datadriven.RunTest(t, "testdata/door", func(_ *testing.T, d *datadriven.TestData) string { return s.run(d) })
}

func group(name string) (g GroupID) {
	if name != "" && name != "none" {
		copy(g[:], name)
	}
	return g
}

func (s *doorScript) hello(d *datadriven.TestData) (Hello, Purpose) {
	h := Hello{Protocol: Versions{1, 1}, LogFormat: Versions{1, 1}, Incarnation: 1, Build: "v1"}
	name, purpose := "g", "control"
	for key, to := range map[string][]any{
		"member": {&h.Member}, "from": {&h.Member}, "to": {&h.To}, "inc": {&h.Incarnation}, "addr": {&h.Addr}, "group": {&name}, "for": {&purpose},
		"build": {&h.Build}, "protocol": {&h.Protocol.Min, &h.Protocol.Max}, "log": {&h.LogFormat.Min, &h.LogFormat.Max},
	} {
		d.MaybeScanArgs(s.t, key, to...)
	}
	h.Group = group(name)
	for p := ForControl; p <= ForAsk; p++ {
		if p.String() == purpose {
			return h, p
		}
	}
	s.t.Fatalf("%s: purpose %q", d.Pos, purpose)
	return h, 0
}

func (s *doorScript) run(d *datadriven.TestData) string {
	var id uint64
	var addr, name string
	d.MaybeScanArgs(s.t, "id", &id)
	d.MaybeScanArgs(s.t, "addr", &addr)
	d.MaybeScanArgs(s.t, "name", &name)
	s.evicted = nil
	var out string
	switch d.Cmd {
	case "new":
		h, _ := s.hello(d)
		h.Incarnation = 1000
		bulks := 8
		d.MaybeScanArgs(s.t, "bulks", &bulks)
		s.door = NewDoor(h, bulks)
	case "peers":
		var peers []Peer
		for _, a := range d.CmdArgs {
			var p Peer
			fmt.Sscan(a.Key, &p.ID)
			p.Addr = a.Vals[0]
			peers = append(peers, p)
		}
		s.door.SetPeers(peers)
		out = fmt.Sprint(s.door.Known(), "\n")
	case "add":
		s.door.AddPeer(id, addr)
	case "remove":
		s.door.RemovePeer(id)
	case "identity":
		h, _ := s.hello(d)
		out = answer(s.door.SetIdentity(h.Identity))
	case "require":
		version := uint32(0)
		d.ScanArgs(s.t, "log", &version)
		s.door.RequireLogFormat(version)
		out = fmt.Sprint(s.door.Hello(0).LogFormat, "\n")
	case "admit":
		h, p := s.hello(d)
		_, r := s.door.Admit(h, p)
		out = answer(r)
	case "enter":
		h, p := s.hello(d)
		w, leave, r := s.door.Enter(h, p, func() { s.evicted = append(s.evicted, name) })
		if out = answer(r); r == nil {
			s.leaves[name] = leave
			out = fmt.Sprintf("welcome: protocol %d, log format %d, member %d\n", w.Protocol, w.LogFormat, w.Member)
		}
	case "leave":
		s.leaves[name]()
	default:
		s.t.Fatalf("%s: command %s", d.Pos, d.Cmd)
	}
	if len(s.evicted) > 0 {
		out += "makes room: " + strings.Join(s.evicted, " ") + "\n"
	}
	return out
}

func answer(r *Rejection) string {
	if r == nil {
		return "ok\n"
	}
	return fmt.Sprintf("%v: %v\n", r.Reason, r)
}

func TestCheckWelcome(t *testing.T) {
	h := Hello{Protocol: Versions{1, 2}, LogFormat: Versions{1, 2}, Identity: Identity{testGroup, 1}, To: 2}
	good := Welcome{Protocol: 2, LogFormat: 1, Identity: Identity{testGroup, 2}}
	if r := CheckWelcome(&h, &good); r != nil {
		t.Error(r)
	}
	for want, change := range map[string]func(w *Welcome){
		"the welcome has protocol version 3 and log format version 1":                                                       func(w *Welcome) { w.Protocol = 3 },
		"the welcome has protocol version 2 and log format version 0":                                                       func(w *Welcome) { w.LogFormat = 0 },
		"the node is member 7, not member 2":                                                                                func(w *Welcome) { w.Member = 7 },
		"the node belongs to group 09000000-0000-0000-0000-000000000000, not to group 01020300-0000-0000-0000-000000000000": func(w *Welcome) { w.Group = GroupID{9} },
	} {
		w := good
		change(&w)
		if r := CheckWelcome(&h, &w); r == nil || r.Text != want {
			t.Errorf("%v, want %q", r, want)
		}
	}
}
