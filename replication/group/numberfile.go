package group

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"

	"github.com/triremedb/trireme/engine/storage/file"
)

// numberFileSize is the size of a file that holds a number: 8 bytes of magic, 4 of the CRC-32C of what follows, and
// 8 of the number.
const numberFileSize = 20

var errNumberFile = errors.New("group: the file is damaged")

// readNumberFile reads such a file; 0: there is none. Errors: errNumberFile, those of reading.
func readNumberFile(fsys file.FS, name string, magic [8]byte) (n uint64, err error) {
	b, err := file.ReadWhole(fsys, name, numberFileSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case errors.Is(err, file.ErrTooLong):
		return 0, errNumberFile
	case err != nil:
		return 0, err
	case len(b) != numberFileSize || [8]byte(b) != magic || binary.LittleEndian.Uint32(b[8:]) != crc32.Checksum(b[12:], castagnoli):
		return 0, errNumberFile
	}
	return binary.LittleEndian.Uint64(b[12:]), nil
}

// writeNumberFile writes one, durably.
func writeNumberFile(fsys file.FS, name string, magic [8]byte, n uint64) error {
	b := append(append([]byte(nil), magic[:]...), 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, n)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
	return file.WriteWhole(fsys, name, b)
}
