package transport

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

var travelling = []raftpb.MessageType{
	raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgSnap, raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp,
	raftpb.MsgTimeoutNow, raftpb.MsgReadIndex, raftpb.MsgReadIndexResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
}

func ids(t *rapid.T, name string) []uint64 {
	return rapid.SliceOfN(rapid.Uint64(), 0, 5).Draw(t, name)
}

// message draws any message that travels, with every pointer set, as the decoder
// makes them.
func message(t *rapid.T) *raftpb.Message {
	u := func(name string) *uint64 { return new(rapid.Uint64Max(maxNumber).Draw(t, name)) }
	m := &raftpb.Message{
		Type: rapid.SampledFrom(travelling).Draw(t, "type").Enum(),
		To:   u("to"), From: u("from"), Term: new(rapid.Uint64Range(1, maxNumber).Draw(t, "term")), LogTerm: u("logterm"), Index: u("index"), Commit: u("commit"),
		Vote: u("vote"), RejectHint: u("hint"), Reject: new(rapid.Bool().Draw(t, "reject")),
	}
	if rapid.Bool().Draw(t, "context") {
		context := rapid.SliceOfN(rapid.Byte(), maxRound, maxRound).Draw(t, "bytes")
		switch m.GetType() {
		case raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp:
			m.Context = context[:roundSize*rapid.IntRange(1, maxRound/roundSize).Draw(t, "numbers")]
		case raftpb.MsgVote, raftpb.MsgPreVote:
			m.Context = context[:rapid.IntRange(1, maxVote).Draw(t, "vote")]
		}
	}
	entries, lengths := 0, []int{0, 1, 100, inlineData, inlineData + 1, 5000}
	index, term := uint64(0), uint64(0)
	switch m.GetType() {
	case raftpb.MsgApp:
		entries = rapid.IntRange(0, 5).Draw(t, "entries")
		index, term = rapid.Uint64Range(1, maxNumber-5).Draw(t, "first"), rapid.Uint64Range(1, 1<<61).Draw(t, "entryterm")
		m.Index, m.LogTerm, m.Term = new(index-1), new(rapid.Uint64Max(term).Draw(t, "before")), new(uint64(maxNumber))
	case raftpb.MsgReadIndex:
		m.Term = new(uint64(0))
		fallthrough
	case raftpb.MsgReadIndexResp:
		entries, lengths = 1, lengths[:5]
	}
	for range entries {
		e := &raftpb.Entry{
			Index: new(index), Term: new(term),
			Type: rapid.SampledFrom([]raftpb.EntryType{raftpb.EntryNormal, raftpb.EntryConfChange, raftpb.EntryConfChangeV2}).Draw(t, "entrytype").Enum(),
		}
		if n := rapid.SampledFrom(lengths).Draw(t, "length"); n > 0 {
			e.Data = bytes.Repeat([]byte{rapid.Byte().Draw(t, "data")}, n)
		}
		m.Entries = append(m.Entries, e)
		index++
		term += rapid.Uint64Max(1<<40).Draw(t, "later")
	}
	if m.GetType() == raftpb.MsgSnap && rapid.Bool().Draw(t, "snapshot") {
		m.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: u("snapindex"), Term: u("snapterm"), ConfState: &raftpb.ConfState{
			Voters: ids(t, "voters"), Learners: ids(t, "learners"), VotersOutgoing: ids(t, "outgoing"), LearnersNext: ids(t, "next"),
			AutoLeave: new(rapid.Bool().Draw(t, "leave")),
		}}}
	}
	return m
}

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var msgs []*raftpb.Message
		var e encoder
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			m := message(t)
			if err := Encodable(m); err != nil {
				t.Fatal(err)
			}
			msgs = append(msgs, m)
			e.message(m)
		}
		size := e.size()
		frame := slices.Concat(e.finish()...)
		if len(frame) != size {
			t.Fatalf("size is %d, frame has %d bytes", size, len(frame))
		}
		got, err := decodeFrame(frame)
		if err != nil || len(got) != len(msgs) {
			t.Fatalf("%d messages, %v", len(got), err)
		}
		for i, m := range msgs {
			if !proto.Equal(m, got[i]) {
				t.Fatalf("message %d:\n%v\n%v", i, m, got[i])
			}
		}
	})
}

// Long data is neither copied when it goes out nor when a frame is decoded.
func TestDataIsShared(t *testing.T) {
	data := bytes.Repeat([]byte{1}, inlineData+1)
	var e encoder
	e.message(appendMsg(1, 2, 1, data))
	pieces := e.finish()
	if !slices.ContainsFunc(pieces, func(p []byte) bool { return &p[0] == &data[0] }) {
		t.Fatal("the encoder copied")
	}
	frame := slices.Concat(pieces...)
	msgs, err := decodeFrame(frame)
	if err != nil {
		t.Fatal(err)
	}
	got := msgs[0].GetEntries()[0].GetData()
	if &got[0] != &frame[len(frame)-len(data)] || cap(got) != len(got) {
		t.Fatal("the decoder copied, or left room to write beyond")
	}
}

func TestUnencodable(t *testing.T) {
	gap := appendMsg(1, 2, 5, []byte("a"), []byte("b"))
	gap.Entries[1].Index = new(uint64(9))
	back := appendMsg(1, 2, 5, []byte("a"), []byte("b"))
	back.Entries[1].Term = new(uint64(0))
	snap := &raftpb.Message{Type: raftpb.MsgSnap.Enum(), Snapshot: &raftpb.Snapshot{Data: []byte("x")}}
	crowd := &raftpb.Message{Type: raftpb.MsgSnap.Enum(), Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
		ConfState: &raftpb.ConfState{Voters: make([]uint64, maxMembers+1)}}}}
	for want, m := range map[string]*raftpb.Message{
		"entry 9 follows entry 6":                    gap,
		"term 0 follows term 1":                      back,
		"type MsgProp does not travel":               {Type: raftpb.MsgProp.Enum()},
		"type MsgHup does not travel":                {Type: raftpb.MsgHup.Enum()},
		"type MsgTransferLeader does not travel":     {Type: raftpb.MsgTransferLeader.Enum()},
		"type MsgStorageAppend does not travel":      {Type: raftpb.MsgStorageAppend.Enum()},
		"too large: MsgReadIndex":                    {Type: raftpb.MsgReadIndex.Enum(), Context: make([]byte, maxContext+1)},
		"too large: MsgApp":                          appendMsg(1, 2, 5, make([]byte, MaxFrame)),
		"too large: a configuration of 1025 members": crowd,
		"a snapshot's data does not travel":          snap,
		"entries begin with index 1844674407370955":  appendMsg(1, 2, 1<<64-3, nil, nil),
	} {
		if err := Encodable(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestMalformedFrames(t *testing.T) {
	one := func(m *raftpb.Message) []byte {
		var e encoder
		e.message(m)
		return slices.Concat(e.finish()...)
	}
	beat := one(heartbeat(1, 2, 3))
	app := one(appendMsg(1, 2, 3, []byte("abc")))
	many := bytes.Repeat(beat, maxMessages+1)
	for name, test := range map[string]struct {
		frame []byte
		want  string
	}{
		"cut":             {app[:len(app)-1], "3 bytes of data where 2 are left"},
		"number cut":      {beat[:len(beat)-1], "a number is cut"},
		"proposal":        {append([]byte{byte(raftpb.MsgProp)}, beat[1:]...), "a message of type MsgProp"},
		"local":           {append([]byte{byte(raftpb.MsgHup)}, beat[1:]...), "a message of type MsgHup"},
		"unknown type":    {append([]byte{99}, beat[1:]...), "a message of type 99"},
		"unknown fields":  {[]byte{byte(raftpb.MsgVote), 0xff, 0xff, 0x7f, 1, 1, 1}, "unknown fields"},
		"too many":        {many, "more than 1024 messages"},
		"entries":         {[]byte{byte(raftpb.MsgApp), 0x80, 1, 1, 1, 1, 0xff, 0xff, 0x7f, 1}, "2097151 entries in 1 bytes"},
		"no entries":      {[]byte{byte(raftpb.MsgApp), 0x80, 1, 1, 1, 1, 0, 1}, "0 entries from index 1 on"},
		"long data":       {[]byte{byte(raftpb.MsgApp), 0x80, 1, 1, 1, 1, 1, 1, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}, "4294967295 bytes of data"},
		"entry type":      {[]byte{byte(raftpb.MsgApp), 0x80, 1, 1, 1, 1, 1, 1, 1, 3, 0}, "an entry of type 3"},
		"members":         {[]byte{byte(raftpb.MsgSnap), 0x80, 2, 1, 1, 1, 5, 5, 0, 100}, "100 members in 0 bytes"},
		"flag":            {[]byte{byte(raftpb.MsgSnap), 0x80, 2, 1, 1, 1, 5, 5, 2, 0, 0, 0, 0}, "a flag of value 2"},
		"too long":        {make([]byte, MaxFrame+1), "at most 71303168 are allowed"},
		"trailing zeroes": {append(slices.Clone(beat), 0), "a number is cut"},
	} {
		_, err := decodeFrame(test.frame)
		if !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestMisshapen: what Raft never sends and would not bear is neither sent nor taken in.
func TestMisshapen(t *testing.T) {
	of := func(typ raftpb.MessageType, change func(m *raftpb.Message)) *raftpb.Message {
		m := &raftpb.Message{Type: typ.Enum(), Term: new(uint64(7)), Index: new(uint64(4)), LogTerm: new(uint64(5))}
		change(m)
		return m
	}
	entries := func(index uint64, terms ...uint64) func(m *raftpb.Message) {
		return func(m *raftpb.Message) {
			for i, term := range terms {
				m.Entries = append(m.Entries, &raftpb.Entry{Index: new(index + uint64(i)), Term: new(term)})
			}
		}
	}
	none := func(*raftpb.Message) {}
	type shape struct {
		m    *raftpb.Message
		want string // empty: it travels
	}
	cases := []shape{
		{of(raftpb.MsgApp, entries(5, 5, 6, 7)), ""},
		{of(raftpb.MsgApp, none), ""},
		{of(raftpb.MsgApp, entries(6, 5)), "entries 6 to 6 behind entry 4"},
		{of(raftpb.MsgApp, entries(4, 5)), "entries 4 to 4 behind entry 4"},
		{of(raftpb.MsgApp, entries(5, 4)), "of the terms 4 to 4, behind one of term 5"},
		{of(raftpb.MsgApp, entries(5, 7, 8)), "of the terms 7 to 8"},
		{of(raftpb.MsgApp, func(m *raftpb.Message) { m.LogTerm = nil; entries(5, 0)(m) }), "of the terms 0 to 0"},
		{of(raftpb.MsgApp, func(m *raftpb.Message) { m.Snapshot = &raftpb.Snapshot{} }), "MsgApp with a snapshot"},
		{of(raftpb.MsgVote, func(m *raftpb.Message) { m.Term = nil }), "MsgVote with term 0"},
		{of(raftpb.MsgApp, func(m *raftpb.Message) { m.Term = nil }), "MsgApp with term 0"},
		{of(raftpb.MsgVote, func(m *raftpb.Message) { m.Term = new(uint64(maxNumber + 1)) }), "MsgVote with the number"},
		{of(raftpb.MsgVote, func(m *raftpb.Message) { m.Term = new(uint64(math.MaxUint64)) }), "MsgVote with the number"},
		{of(raftpb.MsgAppResp, func(m *raftpb.Message) { m.Index = new(uint64(math.MaxUint64)) }), "MsgAppResp with the number"},
		{of(raftpb.MsgAppResp, func(m *raftpb.Message) { m.RejectHint = new(uint64(math.MaxUint64)) }), "MsgAppResp with the number"},
		{of(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Commit = new(uint64(math.MaxUint64)) }), "MsgHeartbeat with the number"},
		{of(raftpb.MsgHeartbeatResp, none), ""},
		{of(raftpb.MsgHeartbeatResp, entries(5, 5)), "MsgHeartbeatResp with 1 entries"},
		{of(raftpb.MsgReadIndex, func(m *raftpb.Message) { m.Term = nil; entries(0, 0)(m) }), ""},
		{of(raftpb.MsgReadIndex, entries(0, 0)), "MsgReadIndex with term 7"},
		{of(raftpb.MsgReadIndex, func(m *raftpb.Message) { m.Term = nil }), "MsgReadIndex with 0 entries"},
		{of(raftpb.MsgReadIndex, func(m *raftpb.Message) {
			m.Term, m.Entries = nil, []*raftpb.Entry{{Data: make([]byte, maxQuestion+1)}}
		}), "MsgReadIndex with 1 entries"},
		{of(raftpb.MsgReadIndexResp, entries(0, 0, 0)), "MsgReadIndexResp with 2 entries"},
		{of(raftpb.MsgTransferLeader, none), "a message of type MsgTransferLeader"},
		{of(raftpb.MsgForgetLeader, none), "a message of type MsgForgetLeader"},
	}
	for _, typ := range travelling {
		longest := map[raftpb.MessageType]int{raftpb.MsgVote: 16, raftpb.MsgPreVote: 16}[typ]
		for n := range maxVote + 5 {
			if typ == raftpb.MsgHeartbeat || typ == raftpb.MsgHeartbeatResp {
				continue
			}
			want := ""
			if n > longest {
				want = fmt.Sprintf("type %v with a context of %d bytes", typ, n)
			}
			cases = append(cases, shape{of(typ, func(m *raftpb.Message) {
				m.Context = make([]byte, n)
				if typ == raftpb.MsgReadIndex || typ == raftpb.MsgReadIndexResp {
					entries(0, 0)(m)
				}
				if typ == raftpb.MsgReadIndex {
					m.Term = nil
				}
			}), want})
		}
	}
	for _, typ := range []raftpb.MessageType{raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp} {
		for n := range maxRound + 10 { // today 8, or 32 with what the leader tells; 24 of an older program
			want := ""
			if n%8 != 0 || n > maxRound {
				want = fmt.Sprintf("type %v with a context of %d bytes", typ, n)
			}
			cases = append(cases, shape{of(typ, func(m *raftpb.Message) { m.Context = make([]byte, n) }), want})
		}
	}
	for _, c := range cases {
		if err := Encodable(c.m); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("to be sent: %v, want %q", err, c.want)
		}
		var e encoder
		e.message(c.m)
		_, err := decodeFrame(slices.Concat(e.finish()...))
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("received: %v, want %q", err, c.want)
		}
	}
}

// Whatever comes: no panic, memory in proportion, and what decodes encodes to
// something that decodes to the same.
func FuzzDecodeFrame(f *testing.F) {
	for _, m := range []*raftpb.Message{
		heartbeat(1, 2, 3), appendMsg(1, 2, 3, []byte("abc"), nil, make([]byte, 600)),
		{Type: raftpb.MsgSnap.Enum(), Term: new(uint64(1)), Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(5)),
			ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3}}}}},
		{Type: raftpb.MsgVote.Enum(), Term: new(uint64(1)), Context: []byte("CampaignTransfer")},
		{Type: raftpb.MsgReadIndex.Enum(), Entries: []*raftpb.Entry{{Data: []byte("question")}}},
	} {
		var e encoder
		e.message(m)
		f.Add(slices.Concat(e.finish()...))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		msgs, err := decodeFrame(frame)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatal(err)
			}
			return
		}
		var e encoder
		for _, m := range msgs {
			if err := Encodable(m); err != nil {
				t.Fatalf("a decoded message cannot be encoded: %v", err)
			}
			e.message(m)
		}
		again, err := decodeFrame(slices.Concat(e.finish()...))
		if err != nil || len(again) != len(msgs) {
			t.Fatalf("%d messages become %d, %v", len(msgs), len(again), err)
		}
		for i := range msgs {
			if !proto.Equal(msgs[i], again[i]) {
				t.Fatalf("%v becomes %v", msgs[i], again[i])
			}
		}
	})
}
