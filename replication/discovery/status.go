package discovery

import (
	"encoding/binary"
	"errors"

	"github.com/triremedb/trireme/replication/transport"
)

// A status travels as a version byte, the state, the group, the member's id, the
// name and the founders; strings with their length, numbers as unsigned varints. The groups that were
// replaced follow, if there are any: older programs do not understand a node that has some.
const statusVersion = 1

var errStatus = errors.New("discovery: malformed status")

func (s *Status) encode() []byte {
	b := append([]byte{statusVersion, byte(s.State)}, s.Group[:]...)
	b = binary.AppendUvarint(b, s.ID)
	b = appendString(b, s.Name)
	b = appendStrings(b, s.Nodes)
	for _, g := range s.Replaced {
		b = append(b, g[:]...)
	}
	return b
}

func decodeStatus(b []byte) (*Status, error) {
	d := decoder{left: b}
	s := &Status{}
	if d.byte() != statusVersion {
		return nil, errStatus
	}
	s.State = State(d.byte())
	s.Group = d.group()
	s.ID = d.uint()
	s.Name = string(d.bytes(d.uint()))
	s.Nodes = d.strings()
	for len(d.left) > 0 && !d.failed && len(s.Replaced) < maxReplaced {
		s.Replaced = append(s.Replaced, d.group())
	}
	if d.failed || len(d.left) > 0 || s.State > Begun {
		return nil, errStatus
	}
	return s, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// decoder reads from the front of left. After a failure everything is zero.
type decoder struct {
	left   []byte
	failed bool
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.left)) {
		d.failed, d.left = true, nil
		return nil
	}
	b := d.left[:n]
	d.left = d.left[n:]
	return b
}

// maxReplaced is how many groups a node names that its own has been made of.
const maxReplaced = 64

func (d *decoder) group() (g transport.GroupID) {
	copy(g[:], d.bytes(uint64(len(g))))
	return g
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.left)
	if n <= 0 {
		d.failed, d.left = true, nil
		return 0
	}
	d.left = d.left[n:]
	return v
}

func (d *decoder) strings() []string {
	n := d.uint()
	if n > maxNodes {
		d.failed = true
	}
	var list []string
	for ; n > 0 && !d.failed; n-- {
		list = append(list, string(d.bytes(d.uint())))
	}
	return list
}
