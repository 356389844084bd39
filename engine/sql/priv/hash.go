package priv

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the protocol's
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strconv"
	"strings"
)

// The form of caching_sha2_password's stored hashes: "$A$", thousands of rounds in three
// hexadecimal digits, "$", salt, digest.
const (
	saltSize   = 20
	digestSize = 43
	hashPrefix = 7 // "$A$005$"
	roundsMax  = 0xfff * 1000
	// passwordMax is the longest password: longer ones are refused unread.
	passwordMax = 256
)

// CheckSHA2 checks a password against a stored hash of caching_sha2_password.
func CheckSHA2(stored string, password []byte) bool {
	if len(stored) != hashPrefix+saltSize+digestSize || !strings.HasPrefix(stored, "$A$") || stored[6] != '$' ||
		len(password) > passwordMax {
		return false
	}
	rounds, err := strconv.ParseUint(stored[3:6], 16, 16)
	if err != nil || rounds == 0 {
		return false
	}
	salt := []byte(stored[hashPrefix : hashPrefix+saltSize])
	sum := shaCrypt(password, salt, int(rounds)*1000)
	return subtle.ConstantTimeCompare(sum, []byte(stored[hashPrefix+saltSize:])) == 1
}

// HashSHA2 is the stored form of a password. REQUIRES: salt has 20 bytes, none of them 0
// or '$'.
func HashSHA2(password, salt []byte) string {
	return "$A$005$" + string(salt) + string(shaCrypt(password, salt, 5000))
}

// shaCrypt is Unix's SHA-crypt with SHA-256, whose steps are those of its specification.
func shaCrypt(password, salt []byte, rounds int) []byte {
	h := sha256.New()
	sum := func(parts ...[]byte) []byte {
		h.Reset()
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	b := sum(password, salt, password)
	first := [][]byte{password, salt, stretch(b, len(password))}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 != 0 {
			first = append(first, b)
		} else {
			first = append(first, password)
		}
	}
	a := sum(first...)
	p := stretch(sum(bytes.Repeat(password, len(password))), len(password))
	s := stretch(sum(bytes.Repeat(salt, 16+int(a[0]))), len(salt))
	for i := range rounds {
		h.Reset()
		if i&1 != 0 {
			h.Write(p)
		} else {
			h.Write(a)
		}
		if i%3 != 0 {
			h.Write(s)
		}
		if i%7 != 0 {
			h.Write(p)
		}
		if i&1 != 0 {
			h.Write(a)
		} else {
			h.Write(p)
		}
		a = h.Sum(a[:0])
	}
	return encodeCrypt(a)
}

// stretch repeats b up to a length.
func stretch(b []byte, n int) []byte {
	return bytes.Repeat(b, n/len(b)+1)[:n]
}

// cryptOrder is the order in which the bytes of the digest are written.
var cryptOrder = [...]uint8{0, 10, 20, 21, 1, 11, 12, 22, 2, 3, 13, 23, 24, 4, 14, 15, 25, 5, 6, 16, 26, 27, 7, 17,
	18, 28, 8, 9, 19, 29}

func encodeCrypt(sum []byte) []byte {
	const digits = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := make([]byte, 0, digestSize)
	write := func(w uint, n int) {
		for range n {
			out = append(out, digits[w&63])
			w >>= 6
		}
	}
	for i := 0; i < len(cryptOrder); i += 3 {
		write(uint(sum[cryptOrder[i]])<<16|uint(sum[cryptOrder[i+1]])<<8|uint(sum[cryptOrder[i+2]]), 4)
	}
	write(uint(sum[31])<<8|uint(sum[30]), 3)
	return out
}

// CheckNative checks the answer to a nonce against a stored hash of
// mysql_native_password, "*" and SHA1(SHA1(password)) in hexadecimal digits.
func CheckNative(stored string, nonce, answer []byte) bool {
	if len(answer) != sha1.Size || len(stored) != 1+2*sha1.Size || stored[0] != '*' {
		return false
	}
	want, err := hex.DecodeString(stored[1:])
	if err != nil {
		return false
	}
	// answer = SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password)))
	h := sha1.New()
	h.Write(nonce)
	h.Write(want)
	var first [sha1.Size]byte
	subtle.XORBytes(first[:], answer, h.Sum(nil))
	second := sha1.Sum(first[:])
	return subtle.ConstantTimeCompare(second[:], want) == 1
}

// HashNative is the stored form of a password.
func HashNative(password []byte) string {
	first := sha1.Sum(password)
	second := sha1.Sum(first[:])
	return "*" + strings.ToUpper(hex.EncodeToString(second[:]))
}
