package priv

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Unlimited is PASSWORD_LOCK_TIME UNBOUNDED.
const Unlimited = -1

// ByServer says that an account has no rule of its own: the server's variable counts.
const ByServer = -1

// PasswordRules are what an account asks of its passwords.
type PasswordRules struct {
	// History is how many passwords back, and Reuse how many days back, a password must not be that of before.
	History, Reuse int
	// RequireCurrent is 1 if who changes the own password has to tell the one of before, else 0.
	RequireCurrent int
	// Attempts is how many wrong passwords in a row close the account for LockDays days (or Unlimited); with either 0 none do.
	Attempts, LockDays int
	// Unlocked is when an administrator has last opened the account to those who had tried too often.
	Unlocked types.Timestamp
}

func noRules() PasswordRules {
	return PasswordRules{History: ByServer, Reuse: ByServer, RequireCurrent: ByServer}
}

// PastPassword is a password that an account has had.
type PastPassword struct {
	Hash string
	Set  types.Timestamp
}

// Uses reports whether the password is this one. REQUIRES: plugin is known.
func Uses(plugin, hash string, password []byte) bool {
	if hash == "" || len(password) == 0 {
		return hash == "" && len(password) == 0
	}
	if strings.EqualFold(plugin, Native) {
		return hash == HashNative(password)
	}
	return CheckSHA2(hash, password)
}

// ExpiredAt reports whether the password is one that has to be changed by now; defaultDays is the server's
// default_password_lifetime, 0: for ever.
func (a *Account) ExpiredAt(now types.Timestamp, defaultDays int) bool {
	days := a.Lifetime
	if days < 0 {
		days = defaultDays
	}
	return a.Expired || days > 0 && a.Changed != 0 && now >= a.Changed+types.Timestamp(days)*day
}

// day in the unit of timestamps.
const day = types.Timestamp(24 * time.Hour / time.Microsecond)

// Remember adds the account's password to those that it has had, and drops what neither of the limits keeps: the last
// passwords, and those of the last days.
func (a *Account) Remember(now types.Timestamp, passwords, days int) {
	a.Past = slices.Clone(a.Past)
	if a.Hash != "" && (passwords > 0 || days > 0) {
		if n := len(a.Past); n > 0 && now <= a.Past[n-1].Set { // the time is a part of the row's key
			now = a.Past[n-1].Set + 1
		}
		a.Past = append(a.Past, PastPassword{Hash: a.Hash, Set: now})
	}
	forgotten := 0 // they are in the order of time
	for forgotten < len(a.Past) && !kept(a.Past, forgotten, now, passwords, days) {
		forgotten++
	}
	a.Past = a.Past[forgotten:]
}

// kept reports whether a password is one of the last ones, or of the last days.
func kept(past []PastPassword, i int, now types.Timestamp, passwords, days int) bool {
	return len(past)-i <= passwords || days > 0 && past[i].Set >= now-types.Timestamp(days)*day
}

// Had reports whether the account has had a password that the limits, as of Remember, forbid to be used again.
func (a *Account) Had(password []byte, now types.Timestamp, passwords, days int) bool {
	for i, p := range a.Past {
		if kept(a.Past, i, now, passwords, days) && usedPast(p.Hash, password) {
			return true
		}
	}
	return false
}

// usedPast checks a password against a hash of any plugin.
func usedPast(hash string, password []byte) bool {
	if strings.HasPrefix(hash, "*") {
		return Uses(Native, hash, password)
	}
	return Uses(SHA2, hash, password)
}

// The members of User_attributes that have a meaning here.
const (
	attrMetadata = "metadata"
	attrSecond   = "additional_password"
	attrLocking  = "Password_locking"
)

type lockingAttribute struct {
	Attempts int `json:"failed_login_attempts"`
	Days     int `json:"password_lock_time_days"`
	// Unlocked is of this server alone: microseconds since 1970.
	Unlocked int64 `json:"unlocked,omitempty"`
}

// readAttributes takes User_attributes apart. What has no meaning here is kept.
func (a *Account) readAttributes(text string) {
	var all map[string]json.RawMessage
	if text == "" || json.Unmarshal([]byte(text), &all) != nil {
		return
	}
	a.Metadata = string(all[attrMetadata])
	_ = json.Unmarshal(all[attrSecond], &a.Second)
	var l lockingAttribute
	_ = json.Unmarshal(all[attrLocking], &l)
	a.Restrictions = readRestrictions(all[attrRestrictions])
	a.Rules.Attempts, a.Rules.LockDays, a.Rules.Unlocked = l.Attempts, l.Days, types.Timestamp(l.Unlocked)
	delete(all, attrMetadata)
	delete(all, attrSecond)
	delete(all, attrLocking)
	delete(all, attrRestrictions)
	if len(all) > 0 {
		a.others = all
	}
}

// attributes is the inverse of readAttributes; empty: NULL.
func (a *Account) attributes() string {
	all := map[string]json.RawMessage{}
	for name, v := range a.others {
		all[name] = v
	}
	if a.Metadata != "" {
		all[attrMetadata] = json.RawMessage(a.Metadata)
	}
	if a.Second != "" {
		all[attrSecond] = quoteJSON(a.Second)
	}
	if r := &a.Rules; r.Attempts != 0 || r.LockDays != 0 || r.Unlocked != 0 {
		all[attrLocking], _ = json.Marshal(lockingAttribute{r.Attempts, r.LockDays, int64(r.Unlocked)})
	}
	if list := a.restrictions(); list != nil {
		all[attrRestrictions] = list
	}
	if len(all) == 0 {
		return ""
	}
	text, err := json.Marshal(all)
	if err != nil { // Metadata is checked where it is set
		return ""
	}
	return string(text)
}

// quoteJSON writes a hash, whose salt has bytes of any kind below 128.
func quoteJSON(text string) json.RawMessage {
	b, _ := json.Marshal(text)
	return b
}

// Describe merges an object into the account's metadata, as JSON_MERGE_PATCH does. Error: 3982.
func (a *Account) Describe(object string) error {
	var patch map[string]any
	if err := decodeJSON(object, &patch); err != nil || patch == nil {
		return sqlerr.New(sqlerr.InvalidUserAttributeJSON)
	}
	var all any
	if a.Metadata != "" {
		_ = decodeJSON(a.Metadata, &all)
	}
	text, err := json.Marshal(mergePatch(all, patch))
	if err != nil {
		return err
	}
	a.Metadata = string(text)
	return nil
}

// decodeJSON reads a text that is one value, and leaves numbers as they are written.
func decodeJSON(text string, into any) error {
	if !json.Valid([]byte(text)) {
		return sqlerr.Newf(sqlerr.InvalidJSONText, "Invalid JSON text")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// mergePatch is RFC 7396.
func mergePatch(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok {
		t = map[string]any{}
	}
	for name, v := range p {
		if v == nil {
			delete(t, name)
		} else {
			t[name] = mergePatch(t[name], v)
		}
	}
	return t
}

func numberOr(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}

// PasswordComponent is the URN of the component that has passwords checked by validate_password.policy.
const PasswordComponent = "file://component_validate_password"

// Component reports whether a component is installed.
func (s *Set) Component(urn string) bool { return slices.Contains(s.Components, urn) }
