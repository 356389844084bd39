package group_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// Behind a network of the test each node finds the others under addresses of its own, so that
// a relay knows the caller by the address that was dialed. The members' names are the same for
// all, n2.e2e:11001, as the group's membership has them; what a name stands for differs.

// relayAddr is the address under which one node finds another.
func relayAddr(from, to uint64) string { return fmt.Sprintf("127.77.%d.%d", from, to) }

// relayName is the name of a node behind a network of the test.
func relayName(id uint64, port string) string { return fmt.Sprintf("n%d.e2e:%s", id, port) }

// namesOf resolves names as one node sees them.
func namesOf(node uint64) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			for answerName(theirs, node) == nil {
			}
		}()
		return ours, nil
	}}
}

// answerName answers one question of DNS in its form for streams: with an address if that is
// asked for, else with none.
func answerName(rw io.ReadWriter, node uint64) error {
	var length [2]byte
	if _, err := io.ReadFull(rw, length[:]); err != nil {
		return err
	}
	q := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(rw, q); err != nil {
		return err
	}
	const header = 12
	end := header // of the question: labels, an empty one, type and class
	for end < len(q) && q[end] != 0 {
		end += 1 + int(q[end])
	}
	end += 5
	if end > len(q) {
		return io.ErrUnexpectedEOF
	}
	a := append([]byte{q[0], q[1], 0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[header:end]...)
	var to uint64
	label := string(q[header+1 : header+1+int(q[header])])
	_, err := fmt.Sscanf(label, "n%d", &to)
	if kind := binary.BigEndian.Uint16(q[end-4:]); err == nil && kind == 1 {
		a[7] = 1
		a = append(a, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		a = append(a, net.ParseIP(relayAddr(node, to)).To4()...)
	}
	_, err = rw.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...))
	return err
}
