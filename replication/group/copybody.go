package group

import (
	"errors"
	"fmt"
	"io"

	"github.com/triremedb/trireme/engine/binlog/cache"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
)

// copiedBodies implements log.Bodies for a log that is made of another one: the body of a large
// transaction is copied before its entry is appended.
type copiedBodies struct {
	fs file.FS
	id entry.StreamID // of the body that is here
}

// copiedName is where the copy lies: what a crash leaves of it goes at the node's start.
const copiedName = cache.DefaultDir + "/ML_copy"

// fetch verifies and copies the body of a log's entry. Error: *log.CorruptError, or the files'.
func (c *copiedBodies) fetch(from *log.Log, index uint64) (err error) {
	b, err := from.OpenBody(index)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := b.Verify(); err != nil { // nobody else looks before the member applies it, when all has been said to be well
		return err
	}
	if err := c.fs.MkdirAll(cache.DefaultDir); err != nil {
		return err
	}
	f, err := c.fs.Open(copiedName, file.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(0); err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for off, end := int64(b.Offset), int64(b.Offset)+b.Stored; off < end; {
		n, err := b.ReadAt(buf[:min(int64(len(buf)), end-off)], off)
		if err != nil && (err != io.EOF || n == 0) {
			return err
		}
		if _, err := f.WriteAt(buf[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	if err := f.Sync(); err != nil {
		return err
	}
	c.id = b.ID
	return nil
}

// Take implements log.Bodies.
func (c *copiedBodies) Take(b *entry.LargeBody) (string, error) {
	if b.ID != c.id {
		return "", fmt.Errorf("%w: of large transaction %v", log.ErrNoBody, b.ID)
	}
	return copiedName, nil
}

// Taken implements log.Bodies.
func (c *copiedBodies) Taken(_ *entry.LargeBody, moved bool) {
	if moved {
		c.id = entry.StreamID{}
	}
}
