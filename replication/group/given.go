package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/triremedb/trireme/engine/storage/file"
)

// givenName is a file beside data that another member has given: up to where the group had agreed on the log
// that came with them. Data begin with the membership as of their snapshot, and the log goes on behind it: with
// the index Raft has the changes between take effect before this member stands for election, as those that it
// had acknowledged itself (decision 0024). Once they are applied the file is not needed.
const givenName = "committed"

const givenSize = 20

var givenMagic = [8]byte{'T', 'R', 'I', 'C', 'O', 'M', 'M', '1'}

// writeGiven writes the file: 8 bytes of magic, 4 of the CRC-32C of what follows, and 8 of the index.
func writeGiven(data file.FS, index uint64) error {
	b := append(append([]byte(nil), givenMagic[:]...), 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, index)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return file.WriteWhole(data, givenName, b)
}

// readGiven reads it, and removes it if everything up to its index is applied. 0: there is none.
func readGiven(data file.FS, applied uint64) (index uint64, err error) {
	b, err := file.ReadWhole(data, givenName, givenSize)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil && !errors.Is(err, file.ErrTooLong) {
		return 0, err
	}
	if err != nil || len(b) != givenSize || [8]byte(b) != givenMagic || binary.LittleEndian.Uint32(b[8:]) != crc32.Checksum(b[12:], castagnoli) {
		return 0, fmt.Errorf("group: the file named %s, of the data that this member was given, is damaged; empty the node's directory and let it join as a new member", givenName)
	}
	if index = binary.LittleEndian.Uint64(b[12:]); index > applied {
		return index, nil
	}
	return 0, data.Remove(givenName)
}
