package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/triremedb/trireme/engine/storage/file"
)

// identity is which member of which group the directory belongs to. It is written
// once, when the group is founded or the node joins it.
type identity struct {
	group   [16]byte
	id      uint64
	founded roster // the group when it was founded; nobody, of one that joined
}

const (
	identityName = "member"
	identityMax  = 1 << 20
)

var identityMagic = [8]byte{'T', 'R', 'I', 'M', 'E', 'M', 'B', '1'}

var errIdentity = errors.New("group: the file named member, which says who this node is, is damaged; " +
	"if the directory cannot be restored, empty it and let the node join as a new member")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// readIdentity reads the file; fs.ErrNotExist says that the directory belongs to no
// group yet.
//
//	 0  8  magic with the format version
//	 8  4  CRC-32C of what follows
//	12 16  group
//	28  8  member
//	36     membership when the group was founded
func readIdentity(fsys file.FS) (*identity, error) { return readIdentityAs(fsys, identityName) }

// readIdentityAs reads a copy of it that has another name.
func readIdentityAs(fsys file.FS, name string) (*identity, error) {
	b, err := file.ReadWhole(fsys, name, identityMax)
	if errors.Is(err, file.ErrTooLong) || err == nil && len(b) < 36 {
		return nil, errIdentity
	}
	if err != nil {
		return nil, err
	}
	if [8]byte(b) != identityMagic || binary.LittleEndian.Uint32(b[8:]) != crc32.Checksum(b[12:], castagnoli) {
		return nil, errIdentity
	}
	id := &identity{group: [16]byte(b[12:]), id: binary.LittleEndian.Uint64(b[28:])}
	id.founded, err = decodeRoster(b[36:])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIdentity, err)
	}
	return id, nil
}

// write makes the file, whole or not at all.
func (id *identity) write(fsys file.FS) error { return id.writeAs(fsys, identityName) }

func (id *identity) writeAs(fsys file.FS, name string) error {
	b := append([]byte(nil), identityMagic[:]...)
	b = append(b, 0, 0, 0, 0)
	b = append(b, id.group[:]...)
	b = binary.LittleEndian.AppendUint64(b, id.id)
	b = append(b, id.founded.encode()...)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return file.WriteWhole(fsys, name, b)
}
