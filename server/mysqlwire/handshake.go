package mysqlwire

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

const (
	nonceSize = 20
	// maxHandshake is the longest packet that is taken from who has not been
	// authenticated yet: attributes may have 64 KiB.
	maxHandshake  = 1 << 17
	maxAttributes = 1 << 16
	maxName       = 256 // bytes of a user or schema name
	// defaultCollation is announced in the greeting: utf8mb4_0900_ai_ci.
	defaultCollation = types.CollationUTF8MB40900AI
)

var errHandshake = sqlerr.New(sqlerr.HandshakeError)

// greeting is the server's first packet, HandshakeV10.
type greeting struct {
	version      string
	id           uint32
	nonce        [nonceSize]byte
	capabilities capability
	status       uint16
	plugin       string
}

func (g *greeting) append(b []byte) []byte {
	b = append(append(append(b, 10), g.version...), 0)
	b = binary.LittleEndian.AppendUint32(b, g.id)
	b = append(append(b, g.nonce[:8]...), 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(g.capabilities))
	b = append(b, byte(defaultCollation))
	b = binary.LittleEndian.AppendUint16(b, g.status)
	b = binary.LittleEndian.AppendUint16(b, uint16(g.capabilities>>16))
	b = append(b, nonceSize+1)
	b = append(b, make([]byte, 10)...)
	b = append(append(b, g.nonce[8:]...), 0)
	return append(append(b, g.plugin...), 0)
}

// parseGreeting reads what another server says first.
func parseGreeting(b []byte) (g greeting, err error) {
	p := payload{b: b}
	if p.uint8() != 10 {
		return g, errHandshake
	}
	g.version = string(p.cString())
	g.id = p.uint32()
	copy(g.nonce[:8], p.take(8))
	p.take(1)
	low := p.uint16()
	p.take(1)
	g.status = p.uint16()
	g.capabilities = capability(low) | capability(p.uint16())<<16
	p.take(11)
	copy(g.nonce[8:], p.take(nonceSize-8))
	p.take(1)
	g.plugin = string(p.cStringOrRest())
	if p.bad {
		return g, errHandshake
	}
	return g, nil
}

// newNonce draws the bytes that a client mixes with its password: none is zero, since
// clients take the nonce for a string.
func newNonce() (n [nonceSize]byte) {
	_, _ = rand.Read(n[:]) // crypto/rand does not fail
	for i := range n {
		// 64 printable characters, so that no client's handling of text matters.
		n[i] = n[i]&63 + '0'
	}
	return n
}

// response is what a client says of itself, HandshakeResponse41, or with
// COM_CHANGE_USER.
type response struct {
	capabilities capability
	maxPacket    uint32
	collation    uint16
	user         string
	auth         []byte // aliases the packet
	schema       string
	plugin       string
	attributes   map[string]string
	zstdLevel    int
	changes      bool // it is COM_CHANGE_USER
}

// isSSLRequest: the client wants TLS before it says more.
func isSSLRequest(b []byte) bool {
	return len(b) == 32 && capability(binary.LittleEndian.Uint32(b)).has(capSSL|capProtocol41)
}

// parseResponse reads a HandshakeResponse41.
func parseResponse(b []byte) (*response, error) {
	p := payload{b: b}
	r := &response{capabilities: capability(p.uint32()), maxPacket: p.uint32(), collation: uint16(p.uint8())}
	p.take(23)
	if p.bad || !r.capabilities.has(capProtocol41) {
		return nil, errHandshake
	}
	user := p.cString()
	switch {
	case r.capabilities.has(capLenencAuthData):
		r.auth = p.string()
	case r.capabilities.has(capSecureConnection):
		r.auth = p.take(int(p.uint8()))
	default:
		r.auth = p.cString()
	}
	var schema []byte
	if r.capabilities.has(capConnectWithDB) && len(p.b) > 0 {
		schema = p.cStringOrRest()
	}
	if r.capabilities.has(capPluginAuth) && len(p.b) > 0 {
		r.plugin = string(p.cStringOrRest())
	}
	if r.capabilities.has(capConnectAttrs) && len(p.b) > 0 {
		r.attributes = parseAttributes(&p)
	}
	if r.capabilities.has(capZstd) && len(p.b) > 0 {
		r.zstdLevel = int(p.uint8())
	}
	return r.finish(&p, user, schema)
}

func (r *response) finish(p *payload, user, schema []byte) (*response, error) {
	if p.bad || len(user) > maxName || len(schema) > maxName {
		return nil, errHandshake
	}
	r.user, r.schema = string(user), string(schema)
	return r, nil
}

// parseChangeUser reads the rest of COM_CHANGE_USER.
func parseChangeUser(b []byte, caps capability) (*response, error) {
	p := payload{b: b}
	r := &response{capabilities: caps, changes: true}
	user := p.cString()
	if caps.has(capSecureConnection) {
		r.auth = p.take(int(p.uint8()))
	} else {
		r.auth = p.cString()
	}
	schema := p.cStringOrRest()
	if len(p.b) > 0 {
		r.collation = p.uint16()
	}
	if caps.has(capPluginAuth) && len(p.b) > 0 {
		r.plugin = string(p.cStringOrRest())
	}
	if caps.has(capConnectAttrs) && len(p.b) > 0 {
		r.attributes = parseAttributes(&p)
	}
	return r.finish(&p, user, schema)
}

// parseAttributes reads the connection attributes. What is beyond the limit, or has an
// overlong name, is left out, as MySQL does.
func parseAttributes(p *payload) map[string]string {
	all := payload{b: p.string()}
	if p.bad || len(all.b) > maxAttributes {
		p.fail()
		return nil
	}
	attributes := make(map[string]string)
	for len(all.b) > 0 {
		name, value := all.string(), all.string()
		if all.bad {
			p.fail()
			return nil
		}
		if len(name) > 0 && len(name) <= 32 && len(value) <= 1024 {
			attributes[string(name)] = string(value)
		}
	}
	return attributes
}

// appendResponse appends a HandshakeResponse41 with all that r has.
func appendResponse(b []byte, r *response) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(r.capabilities))
	b = binary.LittleEndian.AppendUint32(b, r.maxPacket)
	b = append(b, byte(r.collation))
	b = append(b, make([]byte, 23)...)
	b = append(append(b, r.user...), 0)
	b = appendString(b, r.auth)
	if r.capabilities.has(capConnectWithDB) {
		b = append(append(b, r.schema...), 0)
	}
	b = append(append(b, r.plugin...), 0)
	if r.capabilities.has(capConnectAttrs) {
		var all []byte
		for _, name := range slices.Sorted(maps.Keys(r.attributes)) {
			all = appendString(appendString(all, name), r.attributes[name])
		}
		b = appendString(b, all)
	}
	if r.capabilities.has(capZstd) {
		b = append(b, byte(r.zstdLevel))
	}
	return b
}

// appendAuthSwitch appends the request to answer by another method.
func appendAuthSwitch(b []byte, plugin string, nonce *[nonceSize]byte) []byte {
	b = append(append(append(b, headerEOF), plugin...), 0)
	return append(append(b, nonce[:]...), 0)
}

// parseAuthSwitch is for the side of a client.
func parseAuthSwitch(b []byte) (plugin string, nonce []byte, ok bool) {
	if len(b) == 0 || b[0] != headerEOF {
		return "", nil, false
	}
	p := payload{b: b[1:]}
	name := p.cString()
	return string(name), bytes.TrimSuffix(p.b, []byte{0}), !p.bad
}
