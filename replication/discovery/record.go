package discovery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/transport"
)

// record is what a Prepared node has agreed to, as its file says.
//
//	0 8  magic with the format version
//	8 4  CRC-32C of what follows
//	…    group, 16 bytes; then id, name and founders as in a status
type record struct {
	group transport.GroupID
	id    uint64
	plan  *Plan
}

const (
	recordName = "founding"
	recordMax  = 64 << 10
)

var (
	recordMagic = [8]byte{'T', 'R', 'I', 'F', 'O', 'U', 'N', '1'}
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)

	errRecord = errors.New("discovery: the file named founding is damaged; the node has not begun: empty its directory")
)

// readRecord reads the file; nil says that there is none.
func readRecord(fsys file.FS) (*record, error) {
	b, err := file.ReadWhole(fsys, recordName, recordMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, file.ErrTooLong) || err == nil && len(b) < 28:
		return nil, errRecord
	case err != nil:
		return nil, err
	}
	r, err := decodeRecord(b)
	if err == nil {
		err = fsys.SyncDir(".") // a process that was killed may have renamed it and no more
	}
	return r, err
}

func decodeRecord(b []byte) (*record, error) {
	if len(b) < 12 || [8]byte(b) != recordMagic || binary.LittleEndian.Uint32(b[8:]) != crc32.Checksum(b[12:], castagnoli) {
		return nil, errRecord
	}
	d := decoder{left: b[12:]}
	r := &record{}
	copy(r.group[:], d.bytes(uint64(len(r.group))))
	r.id = d.uint()
	name, nodes := string(d.bytes(d.uint())), d.strings()
	if d.failed || len(d.left) > 0 {
		return nil, errRecord
	}
	plan, err := NewPlan(name, nodes, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	if r.plan = plan; r.id == 0 || r.id > uint64(len(plan.Nodes)) || r.group == (transport.GroupID{}) {
		return nil, errRecord
	}
	return r, nil
}

func (r *record) encode() []byte {
	b := append(recordMagic[:8:8], 0, 0, 0, 0)
	b = append(b, r.group[:]...)
	b = binary.AppendUvarint(b, r.id)
	b = appendString(b, r.plan.Name)
	b = appendStrings(b, r.plan.Nodes)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return b
}

// write makes the file, whole or not at all.
func (r *record) write(fsys file.FS) error {
	return file.WriteWhole(fsys, recordName, r.encode())
}

// removeRecord takes the file away once the node has begun.
func removeRecord(fsys file.FS) error {
	if err := fsys.Remove(recordName); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return fsys.SyncDir(".")
}
