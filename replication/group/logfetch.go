package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/transport"
)

// attachLog gives data that were received their log: the group's own files, from the
// one that holds the snapshot's position on, as another member has them up to where
// they are committed.
func (p *provisioning) attachLog(data file.FS, m *provision.Manifest) error {
	n := p.n
	if err := p.suits(m); err != nil {
		return err
	}
	opt := logOptions(&n.opt, n.id, data)
	var errs []error
	for _, call := range p.donors(false) {
		err := log.Destroy(opt)
		if err == nil {
			p.copied, err = fetchLog(n.transport, call, opt, m)
		}
		if err == nil && n.opt.Sabotage != ForgetCommit {
			err = writeGiven(data, p.copied.Index)
		}
		if err == nil {
			return nil
		}
		if p.isStopped() {
			return err
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%w: nobody has its log: %w", provision.ErrSnapshotGone, errors.Join(errs...))
}

// fetchLog copies the files of a member's log, and returns the last entry's position.
func fetchLog(tr transport.Transport, call transport.Call, opt log.Options, m *provision.Manifest) (
	last trx.Position, err error) {
	call.Kind, call.Payload = askLogFile, binary.LittleEndian.AppendUint64(nil, m.Position.Index)
	answer, err := tr.Ask(context.Background(), call)
	if err != nil {
		return last, err
	}
	if len(answer) != 8 {
		return last, errMalformedAnswer
	}
	im, err := log.NewImport(opt)
	if err != nil {
		return last, err
	}
	defer im.Close()
	for number := binary.LittleEndian.Uint64(answer); ; number++ {
		end, err := fetchFile(tr, call, im, number)
		if err != nil {
			return last, err
		}
		if end {
			break
		}
	}
	l, err := log.Open(opt)
	if err != nil {
		return last, err
	}
	term, err := l.Term(m.Position.Index)
	if err == nil && term != m.Position.Term {
		err = fmt.Errorf("group: the log has term %d at index %d, the snapshot %d", term, m.Position.Index, m.Position.Term)
	}
	last = trx.Position{Index: l.LastIndex(), Term: l.LastTerm()}
	return last, errors.Join(err, l.Close())
}

var errMalformedAnswer = errors.New("group: malformed answer")

// fetchFile copies one file and reports whether it is the last one. The stream is
// its size, 8 bytes, whether it is closed, 1 byte, and its bytes.
func fetchFile(tr transport.Transport, call transport.Call, im *log.Import, number uint64) (last bool, err error) {
	call.Kind, call.Payload = bulkLogFile, binary.LittleEndian.AppendUint64(nil, number)
	bulk, err := tr.OpenBulk(context.Background(), call)
	if err != nil {
		return false, err
	}
	r := transport.ToReader(bulk)
	defer func() { _ = r.Close() }()
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return false, err
	}
	if _, err := im.Begin(number, int64(binary.LittleEndian.Uint64(head[:]))); err != nil {
		return false, err
	}
	if _, err := io.Copy(im, r); err != nil {
		return false, err
	}
	return head[8] == 0, im.Finish()
}

// logFileOf answers which file holds an entry, or begins behind it.
func (c *core) logFileOf(payload []byte) ([]byte, error) {
	if len(payload) != 8 {
		return nil, errMalformedAnswer
	}
	index := binary.LittleEndian.Uint64(payload)
	if index+1 == c.binlog.FirstIndex() {
		index++ // the log begins right behind the snapshot, and knows the term before
	}
	pos, err := c.binlog.Position(index)
	return binary.LittleEndian.AppendUint64(nil, pos.File), err
}

// sendLogFile sends a file as far as it is committed.
func (c *core) sendLogFile(payload []byte, w transport.BulkWriter) error {
	if len(payload) != 8 {
		return errMalformedAnswer
	}
	x, err := c.binlog.Export(binary.LittleEndian.Uint64(payload))
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	head := binary.LittleEndian.AppendUint64(nil, uint64(x.Size))
	if x.Closed {
		head = append(head, 1)
	} else {
		head = append(head, 0)
	}
	if err := w.Send(head); err != nil {
		return err
	}
	return sendExport(w, x)
}

// sendExport sends the bytes of a file.
func sendExport(w provision.ChunkWriter, x *log.Export) error {
	_, err := io.CopyBuffer(chunkWriter{w}, struct{ io.Reader }{io.NewSectionReader(x, 0, x.Size)}, make([]byte, 256<<10))
	return err
}

// chunkWriter writes to a stream.
type chunkWriter struct{ provision.ChunkWriter }

func (w chunkWriter) Write(b []byte) (int, error) { return len(b), w.Send(b) }
