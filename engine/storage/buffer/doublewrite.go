package buffer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// doublewriteName is the doublewrite file's name in the engine's directory.
const doublewriteName = "doublewrite.trd"

// doublewrite is the file that makes page writes atomic: a batch of pages is
// durable here before the first of them is written in place. Only the newest
// batch matters; each one overwrites the last, which is safely in place by then.
//
//	offset size field
//	0      8    magic
//	8      4    CRC-32C of bytes 12 to 15 and of all page checksums in order
//	12     4    number of pages
//	16384       the pages, sealed
type doublewrite struct {
	f      file.File
	header [page.Size]byte
}

const doublewriteMagic = "TRDBLWR1"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func openDoublewrite(fsys file.FS) (*doublewrite, error) {
	f, err := fsys.Open(doublewriteName, file.OpenOptions{Create: true})
	if err != nil {
		return nil, fmt.Errorf("buffer: opening the doublewrite file: %w", err)
	}
	size, err := f.Size()
	if err == nil && size < (batchPages+1)*page.Size {
		err = f.Allocate(size, (batchPages+1)*page.Size-size)
		if err == nil {
			err = f.Sync()
		}
	}
	if err == nil {
		err = fsys.SyncDir(".")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("buffer: preparing the doublewrite file: %w", err), f.Close())
	}
	return &doublewrite{f: f}, nil
}

// write makes a batch of sealed pages durable. The pages go first, the header
// that declares them with its own sum over their checksums after; one sync covers
// both, and a header whose pages are torn does not match them.
func (d *doublewrite) write(pages []byte, count int) error {
	clear(d.header[:])
	copy(d.header[:], doublewriteMagic)
	binary.LittleEndian.PutUint32(d.header[12:], uint32(count))
	binary.LittleEndian.PutUint32(d.header[8:], batchSum(d.header[12:16], pages, count))
	if _, err := d.f.WriteAt(pages, page.Size); err != nil {
		return fmt.Errorf("buffer: doublewrite: %w", err)
	}
	if _, err := d.f.WriteAt(d.header[:], 0); err != nil {
		return fmt.Errorf("buffer: doublewrite: %w", err)
	}
	if err := d.f.Sync(); err != nil {
		return fmt.Errorf("buffer: doublewrite: %w", err)
	}
	return nil
}

func batchSum(count, pages []byte, n int) uint32 {
	sum := crc32.Checksum(count, castagnoli)
	for i := range n {
		sum = crc32.Update(sum, castagnoli, pages[i*page.Size:i*page.Size+4])
	}
	return sum
}

func (d *doublewrite) close() error { return d.f.Close() }

// RestoreTorn repairs pages whose last write was cut short: for each page of the
// doublewrite file's batch, it reads the page in place, and where that does not
// verify, writes the copy. It runs before the redo log is applied. exists tells
// whether a tablespace's file is there. It returns the repaired pages.
//
// A page that is right is written all the same: it may be so in the system's cache
// only, left there by a process that ended before its sync, or whose sync failed.
// Everything is durable in place when RestoreTorn returns, so that the file can be
// used again.
func RestoreTorn(fsys file.FS, store Store, exists func(space uint32) bool) ([]page.ID, error) {
	f, err := fsys.Open(doublewriteName, file.OpenOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("buffer: opening the doublewrite file: %w", err)
	}
	defer f.Close()
	pages, count, err := readBatch(f)
	if err != nil || count == 0 {
		return nil, err
	}
	var repaired []page.ID
	var written []uint32 // tablespaces
	inPlace := make([]byte, page.Size)
	for i := range count {
		good := pages[i*page.Size : (i+1)*page.Size]
		id := page.GetID(good)
		if page.Verify(good, id) != nil || !exists(id.Space) {
			continue
		}
		err := store.ReadPage(id, inPlace)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			continue // the file ends before the page: its growth is redone by the log
		}
		if err != nil {
			return repaired, err
		}
		torn := page.Verify(inPlace, id) != nil || page.IsZero(inPlace)
		if !torn && !bytes.Equal(inPlace, good) {
			continue // not written yet: the log brings it up to date
		}
		if err := store.WritePage(id, good); err != nil {
			return repaired, err
		}
		if !slices.Contains(written, id.Space) {
			written = append(written, id.Space)
		}
		if torn {
			repaired = append(repaired, id)
		}
	}
	for _, space := range written {
		if err := store.SyncSpace(space); err != nil {
			return repaired, err
		}
	}
	return repaired, nil
}

// readBatch returns the file's batch, or count 0 if it holds none that is whole:
// then none of its pages was written in place.
func readBatch(f file.File) (pages []byte, count int, err error) {
	var header [page.Size]byte
	if _, err := f.ReadAt(header[:], 0); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, 0, nil
		}
		return nil, 0, fmt.Errorf("buffer: reading the doublewrite file: %w", err)
	}
	count = int(binary.LittleEndian.Uint32(header[12:]))
	if string(header[:8]) != doublewriteMagic || count > batchPages {
		return nil, 0, nil
	}
	pages = make([]byte, count*page.Size)
	if _, err := f.ReadAt(pages, page.Size); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, 0, nil
		}
		return nil, 0, fmt.Errorf("buffer: reading the doublewrite file: %w", err)
	}
	if binary.LittleEndian.Uint32(header[8:]) != batchSum(header[12:16], pages, count) {
		return nil, 0, nil
	}
	return pages, count, nil
}
