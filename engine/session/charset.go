package session

import (
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation" // registers collations
	_ "github.com/triremedb/trireme/engine/types/json"      // registers the JSON codec
)

// charsetInfo is a character set with its default collation.
type charsetInfo struct {
	name      string
	charset   types.Charset
	collation types.CollationID
}

// charsetInfoOf is what a session takes a character set for. MySQL's utf8 is utf8mb3, which is kept as utf8mb4 here: it has all
// of its characters.
func charsetInfoOf(cs types.Charset) charsetInfo {
	if cs == types.CharsetUTF8MB3 {
		return charsetInfo{"utf8mb3", types.CharsetUTF8MB4, types.CollationUTF8MB4Gen}
	}
	return charsetInfo{cs.String(), cs, cs.DefaultCollation()}
}

// charsetNamed finds a character set. Error: 1115.
func charsetNamed(name string) (charsetInfo, error) {
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < 2048 {
		if c := types.CollationByID(types.CollationID(n)); c != nil {
			return charsetInfoOf(c.Charset()), nil
		}
	}
	cs, ok := types.CharsetByName(name)
	if !ok {
		return charsetInfo{}, sqlerr.New(sqlerr.UnknownCharacterSet, name)
	}
	return charsetInfoOf(cs), nil
}

// collationNamed finds a collation by name or number. Error: 1273.
func collationNamed(name string) (types.Collation, error) {
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < 2048 {
		if c := types.CollationByID(types.CollationID(n)); c != nil {
			return c, nil
		}
	}
	if c := types.CollationByName(name); c != nil {
		return c, nil
	}
	return nil, sqlerr.New(sqlerr.UnknownCollation, name)
}

// asKept gives a collation of utf8mb3 as that of utf8mb4 with the same order, if there is one: a connection's utf8mb3 is kept so.
func asKept(c types.Collation) types.Collation {
	if rest, ok := strings.CutPrefix(c.Name(), "utf8mb3_"); ok {
		if kept := types.CollationByName("utf8mb4_" + rest); kept != nil {
			return kept
		}
	}
	return c
}

// charsetOf is the name of a collation's character set.
func charsetOf(c types.Collation) string { return c.Charset().String() }

// clientCollation is the collation for the number that a client gives when it connects:
// those that are not here are taken for the default of their character set.
func clientCollation(id types.CollationID) types.CollationID {
	switch {
	case id == 0:
		return types.CollationUTF8MB40900AI
	case types.CollationByID(id) != nil && !types.CollationByID(id).Charset().IsWide():
		return id
	}
	return types.CollationUTF8MB40900AI
}

// loadLocation finds a time zone: SYSTEM, an offset such as +02:00, or a name of the
// time zone database, whatever its case. Error: 1298.
func loadLocation(name string) (*time.Location, error) {
	if strings.EqualFold(name, "SYSTEM") || strings.EqualFold(name, "UTC") {
		return time.UTC, nil
	}
	if loc, ok := offsetLocation(name); ok {
		return loc, nil
	}
	if loc, ok := expr.LoadZone(name); ok {
		return loc, nil
	}
	return nil, sqlerr.New(sqlerr.UnknownTimeZone, name)
}

// offsetLocation reads [+-]h[h]:mm, -13:59 to +14:00.
func offsetLocation(name string) (*time.Location, bool) {
	if len(name) < 5 || name[0] != '+' && name[0] != '-' {
		return nil, false
	}
	hour, minute, ok := strings.Cut(name[1:], ":")
	h, err1 := strconv.ParseUint(hour, 10, 8)
	m, err2 := strconv.ParseUint(minute, 10, 8)
	if !ok || err1 != nil || err2 != nil || len(minute) != 2 || m > 59 {
		return nil, false
	}
	seconds := int(h*3600 + m*60)
	if name[0] == '-' {
		seconds = -seconds
	}
	if seconds < -(13*3600+59*60) || seconds > 14*3600 {
		return nil, false
	}
	if seconds == 0 {
		return time.UTC, true
	}
	return time.FixedZone(name, seconds), true
}
