package expr

import (
	"bytes"
	"compress/zlib"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strconv"
	"strings"
)

// appendMD5 and appendSHA1 append the hash in hexadecimal digits.
func appendMD5(dst, s []byte) []byte {
	sum := md5.Sum(s)
	return hex.AppendEncode(dst, sum[:])
}

func appendSHA1(dst, s []byte) []byte {
	sum := sha1.Sum(s)
	return hex.AppendEncode(dst, sum[:])
}

// appendSHA2 is SHA2 with so many bits; ok is false if there is no such hash.
func appendSHA2(dst, s []byte, size int64) (out []byte, ok bool) {
	switch size {
	case 224:
		sum := sha256.Sum224(s)
		return hex.AppendEncode(dst, sum[:]), true
	case 0, 256:
		sum := sha256.Sum256(s)
		return hex.AppendEncode(dst, sum[:]), true
	case 384:
		sum := sha512.Sum384(s)
		return hex.AppendEncode(dst, sum[:]), true
	case 512:
		sum := sha512.Sum512(s)
		return hex.AppendEncode(dst, sum[:]), true
	}
	return dst, false
}

// aesMode is a value of block_encryption_mode.
type aesMode struct {
	keyBytes int
	mode     string // ecb, cbc, cfb128, ofb
}

// parseAESMode reads block_encryption_mode.
func parseAESMode(name string) (m aesMode, ok bool) {
	part := strings.Split(strings.ToLower(name), "-")
	if len(part) != 3 || part[0] != "aes" {
		return m, false
	}
	bits, err := strconv.Atoi(part[1])
	if err != nil || bits != 128 && bits != 192 && bits != 256 {
		return m, false
	}
	switch part[2] {
	case "ecb", "cbc", "cfb128", "ofb":
		return aesMode{keyBytes: bits / 8, mode: part[2]}, true
	}
	return m, false
}

// needsIV reports whether the mode takes an initialization vector.
func (m aesMode) needsIV() bool { return m.mode != "ecb" }

// padded reports whether texts are filled up to whole blocks.
func (m aesMode) padded() bool { return m.mode == "ecb" || m.mode == "cbc" }

// block makes the cipher; a key of any length is folded into the one that the mode wants.
func (m aesMode) block(key []byte) cipher.Block {
	var folded [32]byte
	for i, c := range key {
		folded[i%m.keyBytes] ^= c
	}
	b, err := aes.NewCipher(folded[:m.keyBytes])
	if err != nil {
		return nil // no such length: parseAESMode allows only those that exist
	}
	return b
}

// encrypt appends what AES_ENCRYPT makes of s. REQUIRES: iv has a block's length if the mode takes one.
func (m aesMode) encrypt(dst, s, key, iv []byte) []byte {
	b := m.block(key)
	start := len(dst)
	dst = append(dst, s...)
	if m.padded() {
		n := aes.BlockSize - len(s)%aes.BlockSize
		for range n {
			dst = append(dst, byte(n))
		}
	}
	text := dst[start:]
	switch m.mode {
	case "ecb":
		for ; len(text) > 0; text = text[aes.BlockSize:] {
			b.Encrypt(text, text)
		}
	case "cbc":
		cipher.NewCBCEncrypter(b, iv).CryptBlocks(text, text)
	default:
		m.stream(b, text, iv, true)
	}
	return dst
}

// decrypt is the inverse of encrypt; ok is false for what encrypt cannot have made.
func (m aesMode) decrypt(dst, s, key, iv []byte) (out []byte, ok bool) {
	b := m.block(key)
	start := len(dst)
	if m.padded() && (len(s) == 0 || len(s)%aes.BlockSize != 0) {
		return dst, false
	}
	dst = append(dst, s...)
	text := dst[start:]
	switch m.mode {
	case "ecb":
		for t := text; len(t) > 0; t = t[aes.BlockSize:] {
			b.Decrypt(t, t)
		}
	case "cbc":
		cipher.NewCBCDecrypter(b, iv).CryptBlocks(text, text)
	default:
		m.stream(b, text, iv, false)
		return dst, true
	}
	pad := int(text[len(text)-1])
	if pad < 1 || pad > aes.BlockSize || !bytes.Equal(text[len(text)-pad:], bytes.Repeat([]byte{byte(pad)}, pad)) {
		return dst[:start], false
	}
	return dst[:len(dst)-pad], true
}

// stream runs the modes that turn the block cipher into a stream: in cfb128 the next block's key stream comes of the
// ciphertext, in ofb of the key stream before.
func (m aesMode) stream(b cipher.Block, text, iv []byte, encrypt bool) {
	var state, key [aes.BlockSize]byte
	copy(state[:], iv)
	for len(text) > 0 {
		b.Encrypt(key[:], state[:])
		state = key
		n := min(len(text), aes.BlockSize)
		for i := range n {
			in := text[i]
			text[i] ^= key[i]
			if m.mode == "cfb128" {
				if encrypt {
					in = text[i]
				}
				state[i] = in
			}
		}
		text = text[n:]
	}
}

// compressPiece is how much COMPRESS compresses between two looks at whether the statement was interrupted, and
// compressWork what each byte counts for.
const (
	compressPiece = 64 << 10
	compressWork  = 8
)

// appendCompressed is COMPRESS: the length, then zlib's stream; a dot keeps an end in space from being trimmed. Errors:
// those of an interrupted statement.
func appendCompressed(x *Context, dst, s []byte) ([]byte, error) {
	if len(s) == 0 {
		return dst, nil
	}
	buf := bytes.NewBuffer(binary.LittleEndian.AppendUint32(dst, uint32(len(s))&0x3FFFFFFF))
	w := zlib.NewWriter(buf)
	for len(s) > 0 {
		n := min(len(s), compressPiece)
		if err := x.Worked(compressWork * n); err != nil {
			return dst, err
		}
		_, _ = w.Write(s[:n]) // into memory: cannot fail
		s = s[n:]
	}
	_ = w.Close()
	out := buf.Bytes()
	if out[len(out)-1] == ' ' {
		out = append(out, '.')
	}
	return out, nil
}

// compressedBound is a length that what COMPRESS makes of n bytes does not exceed: blocks that are stored as they are
// have a few bytes before them.
func compressedBound(n int) int { return n + n/1000 + 64 }

// uncompressedLen is UNCOMPRESSED_LENGTH; ok is false if s is too short to be compressed text.
func uncompressedLen(s []byte) (n int64, ok bool) {
	if len(s) == 0 {
		return 0, true
	}
	if len(s) <= 4 {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint32(s) & 0x3FFFFFFF), true
}

// appendUncompressed is UNCOMPRESS of what is not empty; ok is false if s is no compressed text. REQUIRES: its length was
// checked against the limit.
func appendUncompressed(dst, s []byte) (out []byte, ok bool) {
	n, ok := uncompressedLen(s)
	if !ok {
		return dst, false
	}
	r, err := zlib.NewReader(bytes.NewReader(s[4:]))
	if err != nil {
		return dst, false
	}
	start := len(dst)
	buf := bytes.NewBuffer(dst)
	_, err = io.Copy(buf, io.LimitReader(r, n+1))
	if err != nil || int64(buf.Len()-start) > n {
		return dst, false
	}
	return buf.Bytes(), true
}
