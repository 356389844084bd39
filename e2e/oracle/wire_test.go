//go:build oracles

package oracle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// wire is a connection that says what database/sql keeps to itself: numbers of warnings,
// flags and decimals of columns, rows before an error. It has no TLS; a password goes in
// clear text, which servers take on Unix sockets only.
type wire struct {
	nc  net.Conn
	r   *bufio.Reader
	seq byte
	buf []byte
}

// field describes a column of a result.
type field struct {
	name     string
	charset  uint16
	length   uint32
	kind     byte
	flags    uint16
	decimals byte
}

const (
	flagNotNull  = 1
	flagUnsigned = 32
	flagBinary   = 128
)

// answer is what a statement gave.
type answer struct {
	fields   []field
	rows     [][]cell
	affected uint64
	warnings uint16
	number   uint16 // of the error
	message  string
	params   int // of a statement that was prepared
	id       uint32
}

type cell struct {
	text []byte
	null bool
}

const (
	capabilities = 0x1 | 0x4 | 0x200 | 0x2000 | 0x8000 | 0x20000 | 0x80000 // .. multi results, plugins
	comQuit      = 1
	comQuery     = 3
	comPrepare   = 22
	comExecute   = 23
	comClose     = 25
)

func dial(dsn string) (*wire, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	nc, err := net.Dial(c.Net, c.Addr)
	if err != nil {
		return nil, err
	}
	w := &wire{nc: nc, r: bufio.NewReaderSize(nc, 1<<16)}
	if err := w.login(c.User, c.Passwd); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return w, nil
}

func (w *wire) login(user, password string) error {
	if _, err := w.packet(); err != nil { // the greeting: a scramble that an empty or clear password does not need
		return err
	}
	p := binary.LittleEndian.AppendUint32(nil, capabilities)
	p = binary.LittleEndian.AppendUint32(p, 1<<24-1)
	p = append(p, 255) // utf8mb4_0900_ai_ci
	p = append(p, make([]byte, 23)...)
	p = append(append(p, user...), 0)
	if password == "" {
		p = append(p, 0)
	} else {
		p = append(append(p, 32), make([]byte, 32)...) // wrong on purpose: the server asks for all of it
	}
	p = append(append(p, "caching_sha2_password"...), 0)
	if err := w.send(p); err != nil {
		return err
	}
	for {
		p, err := w.packet()
		switch {
		case err != nil:
			return err
		case p[0] == 0:
			return nil
		case p[0] == 0xff:
			return errors.New(string(p[3:]))
		case p[0] == 0xfe:
			err = w.send(nil)
		case p[0] == 1 && len(p) > 1 && p[1] == 4:
			err = w.send(append([]byte(password), 0))
		}
		if err != nil {
			return err
		}
	}
}

func (w *wire) send(p []byte) error {
	w.buf = append(w.buf[:0], byte(len(p)), byte(len(p)>>8), byte(len(p)>>16), w.seq)
	w.buf = append(w.buf, p...)
	w.seq++
	_, err := w.nc.Write(w.buf)
	return err
}

func (w *wire) packet() ([]byte, error) {
	var whole []byte
	for {
		var h [4]byte
		if _, err := io.ReadFull(w.r, h[:]); err != nil {
			return nil, err
		}
		n := int(h[0]) | int(h[1])<<8 | int(h[2])<<16
		w.seq = h[3] + 1
		p := make([]byte, n)
		if _, err := io.ReadFull(w.r, p); err != nil {
			return nil, err
		}
		whole = append(whole, p...)
		if n < 1<<24-1 {
			return whole, nil
		}
	}
}

func lenenc(p []byte) (uint64, []byte) {
	switch p[0] {
	case 0xfc:
		return uint64(binary.LittleEndian.Uint16(p[1:])), p[3:]
	case 0xfd:
		return uint64(p[1]) | uint64(p[2])<<8 | uint64(p[3])<<16, p[4:]
	case 0xfe:
		return binary.LittleEndian.Uint64(p[1:]), p[9:]
	}
	return uint64(p[0]), p[1:]
}

func text(p []byte) ([]byte, []byte) {
	n, p := lenenc(p)
	return p[:n], p[n:]
}

func (w *wire) command(c byte, arg []byte) error {
	w.seq = 0
	_ = w.nc.SetDeadline(time.Now().Add(2 * time.Minute))
	return w.send(append([]byte{c}, arg...))
}

// query runs a statement; an error that is not the server's is the connection's end.
func (w *wire) query(s string) (*answer, error) {
	if err := w.command(comQuery, []byte(s)); err != nil {
		return nil, err
	}
	return w.answer(false)
}

func (a *answer) fail(p []byte) *answer {
	a.number = binary.LittleEndian.Uint16(p[1:])
	a.message = string(p[9:])
	return a
}

func (w *wire) answer(inBinary bool) (*answer, error) {
	a := &answer{}
	p, err := w.packet()
	switch {
	case err != nil:
		return nil, err
	case p[0] == 0xff:
		return a.fail(p), nil
	case p[0] == 0:
		a.affected, p = lenenc(p[1:])
		_, p = lenenc(p)
		a.warnings = binary.LittleEndian.Uint16(p[2:])
		return a, nil
	}
	n, _ := lenenc(p)
	if a.fields, err = w.columns(int(n)); err != nil {
		return nil, err
	}
	for {
		p, err := w.packet()
		switch {
		case err != nil:
			return nil, err
		case p[0] == 0xff:
			return a.fail(p), nil
		case p[0] == 0xfe && len(p) < 9:
			a.warnings = binary.LittleEndian.Uint16(p[1:])
			return a, nil
		case inBinary:
			a.rows = append(a.rows, binaryRow(a.fields, p))
			continue
		}
		row := make([]cell, len(a.fields))
		for i := range row {
			if p[0] == 0xfb {
				row[i].null, p = true, p[1:]
				continue
			}
			row[i].text, p = text(p)
		}
		a.rows = append(a.rows, row)
	}
}

func (w *wire) columns(n int) ([]field, error) {
	list := make([]field, n)
	for i := range list {
		p, err := w.packet()
		if err != nil {
			return nil, err
		}
		if p[0] == 0xff {
			return nil, errors.New(string(p[3:]))
		}
		var b []byte
		for j := range 6 {
			if b, p = text(p); j == 4 {
				list[i].name = string(b)
			}
		}
		f := &list[i]
		f.charset, f.length, f.kind = binary.LittleEndian.Uint16(p[1:]), binary.LittleEndian.Uint32(p[3:]), p[7]
		f.flags, f.decimals = binary.LittleEndian.Uint16(p[8:]), p[10]
	}
	_, err := w.packet() // the end of the columns
	return list, err
}

// prepare prepares a statement; id and params are of use where there is no error.
func (w *wire) prepare(s string) (*answer, error) {
	if err := w.command(comPrepare, []byte(s)); err != nil {
		return nil, err
	}
	p, err := w.packet()
	if err != nil {
		return nil, err
	}
	a := &answer{}
	if p[0] == 0xff {
		return a.fail(p), nil
	}
	a.id = binary.LittleEndian.Uint32(p[1:])
	columns, params := int(binary.LittleEndian.Uint16(p[5:])), int(binary.LittleEndian.Uint16(p[7:]))
	a.params = params
	for _, n := range []int{params, columns} {
		if n == 0 {
			continue
		}
		if a.fields, err = w.columns(n); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// param is the value of a parameter in the binary protocol.
type param struct {
	kind     byte
	unsigned bool
	null     bool
	data     []byte
	show     string
}

func (w *wire) execute(id uint32, params []param) (*answer, error) {
	p := binary.LittleEndian.AppendUint32(nil, id)
	p = append(p, 0, 1, 0, 0, 0)
	nulls := make([]byte, (len(params)+7)/8)
	for i, v := range params {
		if v.null {
			nulls[i/8] |= 1 << (i % 8)
		}
	}
	p = append(append(p, nulls...), 1)
	for _, v := range params {
		p = append(p, v.kind, map[bool]byte{true: 0x80}[v.unsigned])
	}
	for _, v := range params {
		if !v.null {
			p = append(p, v.data...)
		}
	}
	if err := w.command(comExecute, p); err != nil {
		return nil, err
	}
	return w.answer(true)
}

func (w *wire) forget(id uint32) error {
	return w.command(comClose, binary.LittleEndian.AppendUint32(nil, id))
}

// binaryRow writes the values of a row of the binary protocol as text.
func binaryRow(fields []field, p []byte) []cell {
	nulls := p[1:]
	p = p[1+(len(fields)+9)/8:]
	row := make([]cell, len(fields))
	for i, f := range fields {
		if nulls[(i+2)/8]>>((i+2)%8)&1 == 1 {
			row[i].null = true
			continue
		}
		row[i].text, p = binaryCell(f, p)
	}
	return row
}

func binaryCell(f field, p []byte) (out, rest []byte) {
	whole := func(n int, v uint64) []byte {
		if f.flags&flagUnsigned != 0 {
			return strconv.AppendUint(nil, v, 10)
		}
		shift := 64 - 8*n
		return strconv.AppendInt(nil, int64(v<<shift)>>shift, 10)
	}
	switch f.kind {
	case 1:
		return whole(1, uint64(p[0])), p[1:]
	case 2, 13:
		return whole(2, uint64(binary.LittleEndian.Uint16(p))), p[2:]
	case 3, 9:
		return whole(4, uint64(binary.LittleEndian.Uint32(p))), p[4:]
	case 8:
		return whole(8, binary.LittleEndian.Uint64(p)), p[8:]
	case 4:
		return fmt.Appendf(nil, "%v", math.Float32frombits(binary.LittleEndian.Uint32(p))), p[4:]
	case 5:
		return fmt.Appendf(nil, "%v", math.Float64frombits(binary.LittleEndian.Uint64(p))), p[8:]
	case 7, 10, 11, 12:
		n := int(p[0])
		return fmt.Appendf(nil, "%x", p[1:1+n]), p[1+n:]
	}
	return text(p)
}
