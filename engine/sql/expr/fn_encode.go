package expr

import (
	"bytes"
	"encoding/base64"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

const hexDigits = "0123456789ABCDEF"

// appendHex appends two capital digits for each byte.
func appendHex(dst, s []byte) []byte {
	for _, c := range s {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

func hexValue(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// appendUnhex is UNHEX; an odd number of digits begins with an implied zero.
func appendUnhex(dst, s []byte) (out []byte, ok bool) {
	var high byte
	odd := len(s)&1 != 0
	for i, c := range s {
		v, ok := hexValue(c)
		if !ok {
			return dst, false
		}
		if (i&1 != 0) != odd {
			dst = append(dst, high|v)
		} else {
			high = v << 4
		}
	}
	return dst, true
}

// appendBase converts a number between bases as CONV does: digits are read from s up to what is none; a negative base reads, or
// writes, a signed number. ok is false for bases that do not exist.
func appendBase(dst, s []byte, from, to int64) (out []byte, ok bool) {
	start := len(dst)
	fromBase, toBase := clampInt(from), clampInt(to)
	if absInt(fromBase) < 2 || absInt(fromBase) > 36 || absInt(toBase) < 2 || absInt(toBase) > 36 || len(s) == 0 {
		return dst, false
	}
	u := parseBase(s, uint64(absInt(fromBase)), fromBase < 0)
	if toBase < 0 {
		dst = strconv.AppendInt(dst, int64(u), -toBase)
	} else {
		dst = strconv.AppendUint(dst, u, toBase)
	}
	return upperASCII(dst, start), true
}

func upperASCII(s []byte, from int) []byte {
	for i := from; i < len(s); i++ {
		if s[i] >= 'a' && s[i] <= 'z' {
			s[i] -= 'a' - 'A'
		}
	}
	return s
}

func absInt(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// parseBase reads an integer in the given base; what is too large becomes the largest.
func parseBase(s []byte, base uint64, signed bool) uint64 {
	s = bytes.TrimLeft(s, " \t\n\v\f\r")
	neg := false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	var u uint64
	for _, c := range s {
		v := uint64(255)
		switch {
		case c >= '0' && c <= '9':
			v = uint64(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			v = uint64(c|0x20-'a') + 10
		}
		if v >= base {
			break
		}
		hi, lo := bits.Mul64(u, base)
		sum, carry := bits.Add64(lo, v, 0)
		if hi != 0 || carry != 0 {
			u = math.MaxUint64
			if !signed {
				return u
			}
			break
		}
		u = sum
	}
	if signed {
		limit := uint64(math.MaxInt64)
		if neg {
			limit++
		}
		u = min(u, limit)
	}
	if neg {
		return -u
	}
	return u
}

// appendCodeBytes appends an integer's bytes, the highest first and no leading zeros, as CHAR() does.
func appendCodeBytes(dst []byte, n uint32) []byte {
	for shift := 24; shift > 0; shift -= 8 {
		if n>>shift != 0 {
			dst = append(dst, byte(n>>shift))
		}
	}
	return append(dst, byte(n))
}

// ordOf is ORD: the bytes of the first character as a number.
func ordOf(cs types.Charset, s []byte) int64 {
	if len(s) == 0 {
		return 0
	}
	var n int64
	for _, c := range s[:charLen(cs, s)] {
		n = n<<8 | int64(c)
	}
	return n
}

// appendSQLQuoted is QUOTE of a string.
func appendSQLQuoted(dst, s []byte) []byte {
	dst = append(dst, '\'')
	for _, c := range s {
		switch c {
		case 0:
			dst = append(dst, '\\', '0')
		case 0x1a:
			dst = append(dst, '\\', 'Z')
		case '\'', '\\':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '\'')
}

// soundexCodes are the digits of A to Z; vowels and their like are 0.
const soundexCodes = "01230120022455012623010202"

// appendSoundex is SOUNDEX: the first letter and the digits of the others, vowels dropped before repetitions are.
func appendSoundex(dst, s []byte) []byte {
	var last byte
	start := len(dst)
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		letter := r | 0x20
		ascii := letter >= 'a' && letter <= 'z' && r < utf8.RuneSelf
		if !ascii && r < 0xc0 || r == utf8.RuneError {
			continue
		}
		code := byte('0')
		if ascii {
			code = soundexCodes[letter-'a']
		}
		if len(dst) == start {
			dst = upperASCII(utf8.AppendRune(dst, r), start)
			last = code
		} else if code != '0' && code != last {
			dst = append(dst, code)
			last = code
		}
	}
	if len(dst) > start {
		for n := utf8.RuneCount(dst[start:]); n < 4; n++ {
			dst = append(dst, '0')
		}
	}
	return dst
}

// base64Line is the number of characters after which TO_BASE64 breaks the line.
const base64Line = 76

// appendBase64 is TO_BASE64.
func appendBase64(dst, s []byte) []byte {
	const chunk = base64Line / 4 * 3
	for len(s) > chunk {
		dst = base64.StdEncoding.AppendEncode(dst, s[:chunk])
		dst = append(dst, '\n')
		s = s[chunk:]
	}
	return base64.StdEncoding.AppendEncode(dst, s)
}

// appendUnbase64 is FROM_BASE64: space between characters is skipped.
func appendUnbase64(dst, s []byte) (out []byte, ok bool) {
	if bytes.ContainsAny(s, " \t\r\n\v\f") {
		s = bytes.Map(func(r rune) rune {
			if r == ' ' || r >= '\t' && r <= '\r' {
				return -1
			}
			return r
		}, s)
	}
	start := len(dst)
	dst, err := base64.StdEncoding.AppendDecode(dst, s)
	if err != nil {
		return dst[:start], false
	}
	return dst, true
}

// numberLocale is how a locale writes numbers.
type numberLocale struct {
	point, group string // group empty: digits are not grouped
	indian       bool   // groups of two beyond the first of three
}

// numberLocaleOf returns the style of a locale such as de_DE; ok is false if it is unknown.
func numberLocaleOf(name string) (l numberLocale, ok bool) {
	l, ok = numberLocales[strings.ToLower(name)]
	return l, ok
}

var numberLocales = buildNumberLocales()

func buildNumberLocales() map[string]numberLocale {
	m := map[string]numberLocale{}
	add := func(l numberLocale, names string) {
		for _, n := range strings.Fields(names) {
			m[n] = l
		}
	}
	add(numberLocale{point: ".", group: ","}, `en_us en_gb en_au en_ca en_nz en_ph en_za en_zw ja_jp ko_kr zh_cn zh_hk zh_tw
		he_il th_th ar_ae ar_bh ar_dz ar_eg ar_iq ar_jo ar_kw ar_lb ar_ly ar_ma ar_om ar_qa ar_sd ar_sy ar_tn ar_ye ms_my
		hi_in gu_in es_mx es_us es_gt es_hn es_do es_ni es_pa es_pe es_pr es_sv ur_pk`)
	add(numberLocale{point: ".", group: ",", indian: true}, "en_in ta_in te_in")
	add(numberLocale{point: "."}, "ar_sa sr_rs")
	add(numberLocale{point: ",", group: "."}, `de_de de_be de_lu da_dk nb_no no_no tr_tr id_id is_is vi_vn fo_fo
		mn_mn ro_ro es_es lt_lt ru_ua es_ar es_bo es_cl es_co es_py es_uy es_ve es_ec sq_al`)
	add(numberLocale{point: ","}, `de_at fr_fr fr_be fr_ca fr_ch fr_lu it_it pt_pt pt_br nl_nl nl_be ca_es eu_es gl_es
		pl_pl bg_bg hr_hr sl_si el_gr`)
	add(numberLocale{point: ",", group: " "}, "cs_cz sk_sk et_ee fi_fi lv_lv mk_mk ru_ru sv_se sv_fi es_cr")
	add(numberLocale{point: ",", group: "."}, "uk_ua be_by hu_hu")
	add(numberLocale{point: ".", group: "'"}, "de_ch")
	add(numberLocale{point: ",", group: "'"}, "it_ch rm_ch")
	return m
}

// appendGrouped appends a number's plain text with the locale's point and groups of digits.
func appendGrouped(dst, text []byte, l numberLocale) []byte {
	if len(text) > 0 && text[0] == '-' {
		dst = append(dst, '-')
		text = text[1:]
	}
	whole, frac, hasPoint := bytes.Cut(text, []byte{'.'})
	for i, c := range whole {
		left := len(whole) - i
		boundary := left%3 == 0
		if l.indian && left > 3 {
			boundary = (left-3)%2 == 0
		}
		if i > 0 && boundary && l.group != "" {
			dst = append(dst, l.group...)
		}
		dst = append(dst, c)
	}
	if hasPoint {
		dst = append(append(dst, l.point...), frac...)
	}
	return dst
}

// appendFormatted is FORMAT of a decimal.
func appendFormatted(dst []byte, d decimal.Decimal, places int64, l numberLocale) []byte {
	r, err := d.Round(int(min(max(places, 0), types.MaxDecimalScale)))
	if err != nil {
		r = d
	}
	var buf [96]byte
	return appendGrouped(dst, r.AppendText(buf[:0]), l)
}

// appendFormattedDouble is FORMAT of a double.
func appendFormattedDouble(dst []byte, f float64, places int64, l numberLocale) []byte {
	n := int(min(max(places, 0), types.MaxDecimalScale))
	f = roundDouble(f, int64(n), false)
	if f == 0 {
		f = 0 // no sign
	}
	var buf [400]byte
	text := strconv.AppendFloat(buf[:0], f, 'f', -1, 64) // the digits that tell the number from others, then zeros
	digits := 0
	if i := bytes.IndexByte(text, '.'); i >= 0 {
		digits = len(text) - i - 1
	}
	switch {
	case digits > n:
		text = strconv.AppendFloat(buf[:0], f, 'f', n, 64)
	case digits == 0 && n > 0:
		text = append(text, '.')
		fallthrough
	default:
		text = append(text, bytes.Repeat([]byte{'0'}, n-digits)...)
	}
	return appendGrouped(dst, text, l)
}

// byteUnits are the units of FORMAT_BYTES, each 1024 times the one before.
var byteUnits = [...]string{" bytes", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"}

// appendByteCount is FORMAT_BYTES.
func appendByteCount(dst []byte, f float64) []byte {
	unit, scaled := 0, f
	for unit < len(byteUnits)-1 && math.Abs(scaled) >= 1024 {
		scaled /= 1024
		unit++
	}
	switch {
	case unit == 0:
		dst = strconv.AppendFloat(dst, math.Trunc(f)+0, 'f', 0, 64) // and never -0
		for len(dst) < 4 {
			dst = append([]byte{' '}, dst...)
		}
	case math.Abs(scaled) >= 100_000:
		dst = strconv.AppendFloat(dst, scaled, 'e', 2, 64)
	default:
		dst = strconv.AppendFloat(dst, scaled, 'f', 2, 64)
	}
	return append(dst, byteUnits[unit]...)
}

// picoUnits are the units of FORMAT_PICO_TIME with their lengths in picoseconds.
var picoUnits = [...]struct {
	name  string
	picos float64
}{{" ps", 1}, {" ns", 1e3}, {" us", 1e6}, {" ms", 1e9}, {" s", 1e12}, {" min", 60e12}, {" h", 3600e12}, {" d", 86400e12}}

// appendPicoTime is FORMAT_PICO_TIME.
func appendPicoTime(dst []byte, f float64) []byte {
	unit := 0
	for unit < len(picoUnits)-1 && math.Abs(f) >= picoUnits[unit+1].picos {
		unit++
	}
	scaled := f / picoUnits[unit].picos
	switch {
	case unit == 0:
		dst = strconv.AppendFloat(dst, math.Trunc(f), 'f', 0, 64)
		for len(dst) < 3 {
			dst = append([]byte{' '}, dst...)
		}
	case math.Abs(scaled) >= 100_000:
		dst = strconv.AppendFloat(dst, scaled, 'e', 2, 64)
	default:
		dst = strconv.AppendFloat(dst, scaled, 'f', 2, 64)
	}
	return append(dst, picoUnits[unit].name...)
}
