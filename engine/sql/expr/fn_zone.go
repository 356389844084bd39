package expr

import (
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones are known whatever the machine has

	"github.com/triremedb/trireme/engine/types"
)

// zones keeps the time zones that were used, by their names in lower case. Only names that exist are kept, so
// that there are at most as many as the database has.
var zones struct {
	mu    sync.Mutex
	known map[string]*time.Location
}

// LoadZone returns the time zone of a name: an offset such as +05:30, from -13:59 to +14:00, or a name such as Europe/Berlin
// whatever its case. It does not know SYSTEM.
func LoadZone(name string) (*time.Location, bool) {
	if offset, ok := parseOffset(name); ok {
		return time.FixedZone(name, offset), true
	}
	if !isZoneName(name) {
		return nil, false
	}
	key := strings.ToLower(name)
	zones.mu.Lock()
	loc := zones.known[key]
	zones.mu.Unlock()
	if loc != nil {
		return loc, true
	}
	for _, spelling := range []string{name, zoneSpelling(name), strings.ToUpper(name)} {
		loc, err := time.LoadLocation(spelling)
		if err != nil {
			continue
		}
		zones.mu.Lock()
		if zones.known == nil || len(zones.known) > 2000 {
			zones.known = map[string]*time.Location{}
		}
		zones.known[key] = loc
		zones.mu.Unlock()
		return loc, true
	}
	return nil, false
}

// parseOffset reads +hh:mm.
func parseOffset(s string) (seconds int, ok bool) {
	if len(s) < 5 || len(s) > 6 || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hour, minute, ok := strings.Cut(s[1:], ":")
	if !ok || len(hour) > 2 || len(minute) != 2 {
		return 0, false
	}
	n := 0
	for _, part := range [2]string{hour, minute} {
		v := 0
		for _, c := range []byte(part) {
			if c-'0' > 9 {
				return 0, false
			}
			v = v*10 + int(c-'0')
		}
		n = n*60 + v
	}
	if minute[0] > '5' {
		return 0, false
	}
	if s[0] == '-' {
		return -n * 60, n < 14*60
	}
	return n * 60, n <= 14*60
}

// isZoneName keeps apart what could not be a name in the zone database: it finds files, by paths that can be
// written in many ways.
func isZoneName(s string) bool {
	if s == "" || len(s) > 64 || strings.EqualFold(s, "local") || strings.Contains("/"+s+"/", "//") {
		return false
	}
	for _, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && c != '/' && c != '_' && c != '-' && c != '+' {
			return false
		}
	}
	return true
}

// zoneSpelling writes a name as the zone database does: America/Port_of_Spain, Etc/GMT+1.
func zoneSpelling(s string) string {
	out := []byte(strings.ToLower(s))
	start := 0
	for i := 0; i <= len(out); i++ {
		if i < len(out) && out[i] != '/' && out[i] != '_' && out[i] != '-' {
			continue
		}
		switch word := string(out[start:i]); {
		case word == "of" || word == "es" || word == "au" || word == "":
		case strings.HasPrefix(word, "gmt") || word == "utc" || word == "uct":
			copy(out[start:], strings.ToUpper(word))
		default:
			out[start] = upperASCII([]byte{out[start]}, 0)[0]
		}
		start = i + 1
	}
	return string(out)
}

// zone returns the zone of an argument.
func (x *Context) zone(name []byte) (*time.Location, bool) {
	if strings.EqualFold(string(name), "system") {
		return time.UTC, true
	}
	return LoadZone(string(name))
}

// maxUnixMicros is the last instant that UNIX_TIMESTAMP and its like know: 3001-01-18 23:59:59.999999 UTC.
const maxUnixMicros = 32536771199_999999

// instantOf returns the microseconds since 1970 at which a clock in loc shows d; ok is false for dates with zero parts and
// beyond what UNIX_TIMESTAMP knows.
func instantOf(d types.DateTime, loc *time.Location) (micros int64, ok bool) {
	_, month, day := d.Date()
	if month == 0 || day == 0 {
		return 0, false
	}
	t, _ := types.TimestampOf(d, loc)
	return int64(t), t >= 0 && t <= maxUnixMicros
}

// clockAt returns what a clock in loc shows so many microseconds after 1970.
func clockAt(micros int64, loc *time.Location) types.DateTime {
	t := time.UnixMicro(micros).In(loc)
	return types.MakeDateTime(t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()/1000)
}
