package provision

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// Over a stream in both directions the receiver sends the length of a request, 4
// bytes, and the request; the donor sends the answer and ends the stream.

// maxRequest bounds a request in bytes.
const maxRequest = maxAfter + 1024

// Serve answers the request that a stream brings, and closes it. Errors are as of
// Answer.
func (s *Source) Serve(stream io.ReadWriteCloser) error {
	var head [4]byte
	_, err := io.ReadFull(stream, head[:])
	n := binary.LittleEndian.Uint32(head[:])
	var req []byte
	switch {
	case err != nil:
	case n > maxRequest:
		err = fmt.Errorf("%w: a request of %d bytes", ErrMalformed, n)
	default:
		req = make([]byte, n)
		_, err = io.ReadFull(stream, req)
	}
	if err == nil {
		err = s.Answer(context.Background(), req, writer{stream})
	}
	return errors.Join(err, stream.Close())
}

type writer struct{ w io.Writer }

func (w writer) Send(chunk []byte) error {
	_, err := w.w.Write(chunk)
	return err
}

// dialed makes requests over streams in both directions.
func dialed(dial func(csn uint64) (io.ReadWriteCloser, error)) func(context.Context, Want, []byte) (ChunkReader, error) {
	return func(_ context.Context, want Want, req []byte) (ChunkReader, error) {
		stream, err := dial(want.CSN)
		if err != nil {
			return nil, err
		}
		b := binary.LittleEndian.AppendUint32(nil, uint32(len(req)))
		if _, err := stream.Write(append(b, req...)); err != nil {
			return nil, errors.Join(err, stream.Close())
		}
		return &streamReader{stream: stream, buf: make([]byte, 256<<10)}, nil
	}
}

// streamReader reads chunks from a stream.
type streamReader struct {
	stream io.ReadWriteCloser
	buf    []byte
	closed atomic.Bool
}

func (r *streamReader) Next() ([]byte, error) {
	for {
		n, err := r.stream.Read(r.buf)
		if n > 0 {
			return r.buf[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Close also ends a call of Next.
func (r *streamReader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	return r.stream.Close()
}
