package transport

import (
	"fmt"

	"github.com/triremedb/trireme/internal/process"
)

// ProtocolMin and ProtocolMax are the versions of the contract between nodes that
// this build speaks. From 2 on a leader's heartbeats tell how fresh its followers are. From 3 on
// every message ends with its checksum.
const (
	ProtocolMin = 1
	ProtocolMax = 3
)

// Versions is a range of versions, both ends included.
type Versions struct{ Min, Max uint32 }

func (v Versions) String() string {
	if v.Min == v.Max {
		return fmt.Sprintf("version %d", v.Min)
	}
	return fmt.Sprintf("versions %d to %d", v.Min, v.Max)
}

func (v Versions) valid() bool { return v.Min > 0 && v.Min <= v.Max }

// shared is the newest version in both ranges.
func (v Versions) shared(w Versions) (uint32, bool) {
	newest := min(v.Max, w.Max)
	return newest, newest >= max(v.Min, w.Min)
}

// Hello says who calls.
type Hello struct {
	Protocol, LogFormat Versions
	Identity
	To          uint64 // the member that the caller expects; 0: anyone
	Addr        string // where the caller can be dialed
	Build       string
	Incarnation uint64 // drawn at random when the process starts
	Process     process.Identity
}

// Welcome accepts a hello.
type Welcome struct {
	Protocol, LogFormat uint32 // agreed on
	Identity
	Build       string
	Incarnation uint64
	Process     process.Identity
}

// Reason is why a hello is refused.
type Reason uint32

// The reasons, as they travel.
const (
	ReasonMalformed Reason = 1 + iota
	ReasonProtocolVersion
	ReasonLogFormatVersion
	ReasonOtherGroup
	ReasonOtherMember
	ReasonDuplicateMember
	ReasonRemoved
	ReasonIdentity
	ReasonTooMany
	ReasonNoGroup
	ReasonNotAMember
)

var reasonNames = [...]string{
	ReasonMalformed: "malformed", ReasonProtocolVersion: "protocol version", ReasonLogFormatVersion: "log format version",
	ReasonOtherGroup: "other group", ReasonOtherMember: "other member", ReasonDuplicateMember: "duplicate member",
	ReasonRemoved: "removed", ReasonIdentity: "identity", ReasonTooMany: "too many", ReasonNoGroup: "no group",
	ReasonNotAMember: "not a member",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint32(r))
}

// Rejection is a refused hello.
type Rejection struct {
	Reason Reason
	Text   string
}

func (r *Rejection) Error() string { return r.Text }

// rejectf makes a rejection.
func rejectf(reason Reason, format string, args ...any) *Rejection {
	return &Rejection{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// Purpose is what a caller wants.
type Purpose uint8

const (
	ForControl Purpose = iota
	ForEntries
	ForBulk
	ForAsk
)

func (p Purpose) String() string { return [...]string{"control", "entries", "bulk", "ask"}[p] }

// Limits of the strings in a hello.
const (
	maxAddr  = 300
	maxBuild = 200
)

// check finds what is wrong with a hello by itself.
func (h *Hello) check() *Rejection {
	switch {
	case !h.Protocol.valid():
		return rejectf(ReasonMalformed, "the hello has protocol versions %d to %d", h.Protocol.Min, h.Protocol.Max)
	case !h.LogFormat.valid():
		return rejectf(ReasonMalformed, "the hello has log format versions %d to %d", h.LogFormat.Min, h.LogFormat.Max)
	case len(h.Addr) > maxAddr || len(h.Build) > maxBuild:
		return rejectf(ReasonMalformed, "the hello has an address of %d bytes and a build of %d, at most %d and %d are allowed",
			len(h.Addr), len(h.Build), maxAddr, maxBuild)
	case h.Group == (GroupID{}) && h.Member != 0:
		return rejectf(ReasonMalformed, "the hello has member id %d and no group", h.Member)
	}
	return nil
}
