package session

import (
	"context"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// drawnPassword is one of IDENTIFIED BY RANDOM PASSWORD.
type drawnPassword struct {
	id   priv.ID
	text string
}

// tellDrawn sends the passwords that a statement has drawn, if it has.
func (s *Session) tellDrawn(list []drawnPassword) error {
	if len(list) == 0 {
		return nil
	}
	var rows [][]any
	for _, d := range list {
		rows = append(rows, []any{d.id.Name, d.id.Host, d.text, int64(1)})
	}
	return s.give([]column{{"user", longText}, {"host", longText}, {"generated password", longText}, {"auth_factor", bigNumber}}, rows...)
}

// identified applies IDENTIFIED .. and the options of CREATE USER, for a new account, or ALTER USER.
func (s *Session) identified(set *priv.Set, a *priv.Account, auth *ast.Auth, options []ast.AccountOption, created bool) ([]drawnPassword, error) {
	if err := passwordRules(a, options); err != nil { // which count for the password of the same statement
		return nil, err
	}
	drawn, err := s.authenticate(set, a, auth, created)
	if err != nil {
		return nil, err
	}
	return drawn, s.accountOptions(a, options)
}

// passwordRules applies the options that say what passwords an account may have. Error: 1525.
func passwordRules(a *priv.Account, options []ast.AccountOption) error {
	for i := range options {
		o := &options[i]
		n := int(min(o.Number, math.MaxUint16))
		switch o.Name {
		case "PASSWORD_HISTORY":
			a.Rules.History = n
		case "PASSWORD_REUSE_INTERVAL":
			a.Rules.Reuse = n
		case "PASSWORD_REQUIRE_CURRENT":
			a.Rules.RequireCurrent = n
		case "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME":
			if o.Number > math.MaxInt16 {
				return wrongOption(o.Name, o.Number)
			}
			if o.Name == "PASSWORD_LOCK_TIME" {
				a.Rules.LockDays = n
			} else {
				a.Rules.Attempts = n
			}
		}
	}
	return nil
}

// unlockStamp is the time of a statement that opens an account, or says how often its password may be tried: no two are the same, so that
// members count by it, whatever the account is called.
func (s *Session) unlockStamp() types.Timestamp {
	s.unlocked = max(types.Timestamp(s.x.Now.UnixMicro()), s.unlocked+1)
	return s.unlocked
}

// wrongOption is error 1525.
func wrongOption(name string, n int64) error {
	return sqlerr.Newf(sqlerr.WrongValue, "Incorrect %s value: '%d'", name, n)
}

// PasswordExpired reports whether an account's password has to be changed before anything else.
func (m *Manager) PasswordExpired(a *priv.Account) bool {
	return a.ExpiredAt(types.Timestamp(m.env.Now().UnixMicro()), int(m.global(varPasswordLifetime).n))
}

// authenticate sets how an account proves who it is. auth is nil if the statement does not say.
func (s *Session) authenticate(set *priv.Set, a *priv.Account, auth *ast.Auth, created bool) (drawn []drawnPassword, err error) {
	own := !created && a.ID == s.accountID()
	if auth == nil {
		if created {
			return nil, s.validPassword(set, a, "")
		}
		return nil, nil
	}
	if own && (auth.Retain || auth.Discard) {
		if err := s.privileges().Needs(priv.CreateUser, "APPLICATION_PASSWORD_ADMIN"); err != nil {
			return nil, err
		}
	}
	if auth.Discard {
		a.Second = ""
		return nil, nil
	}
	plugin := strings.ToLower(auth.Plugin)
	if plugin == "" {
		plugin = a.Plugin
	}
	if !priv.KnownPlugin(plugin) {
		return nil, sqlerr.New(sqlerr.PluginIsNotLoaded, auth.Plugin)
	}
	password := auth.Password
	if auth.Random {
		password = s.drawPassword(set, a)
		drawn = []drawnPassword{{a.ID, password}}
	}
	hash := auth.Hash
	if auth.HasHash {
		if err := priv.CheckHash(plugin, hash); err != nil {
			return nil, err
		}
	}
	if !auth.HasHash || hash == "" {
		if err := s.validPassword(set, a, password); err != nil {
			return nil, err
		}
	}
	if err := s.provesCurrent(a, auth, own, created); err != nil {
		return nil, err
	}
	if !auth.HasHash || hash == "" {
		if hash, err = s.hashNew(a, plugin, password); err != nil {
			return nil, err
		}
	}
	if err := retain(a, plugin, hash, auth.Retain); err != nil {
		return nil, err
	}
	now := types.Timestamp(s.x.Now.UnixMicro())
	a.Plugin, a.Hash, a.Changed = plugin, hash, now/1e6*1e6
	a.Expired = !created && !auth.Random && !auth.HasPassword && !auth.HasHash // a plugin alone: there is no password yet
	passwords, days := s.historyOf(a)
	a.Remember(now, passwords, days)
	return drawn, nil
}

// provesCurrent checks REPLACE, by which who changes the own password tells the one of before. Errors: 3891, 3892, 3893.
func (s *Session) provesCurrent(a *priv.Account, auth *ast.Auth, own, created bool) error {
	switch {
	case auth.HasReplace && !own:
		return sqlerr.New(sqlerr.CurrentPasswordNotRequired)
	case auth.HasReplace:
		if !priv.Uses(a.Plugin, a.Hash, []byte(auth.Replace)) {
			return sqlerr.New(sqlerr.IncorrectCurrentPassword)
		}
		return nil
	case created || !own || s.mayAdminister(priv.Update) == nil:
		return nil
	}
	need := a.Rules.RequireCurrent
	if need < 0 {
		need = int(s.m.global(varRequireCurrent).n)
	}
	if need > 0 {
		return sqlerr.New(sqlerr.MissingCurrentPassword)
	}
	return nil
}

// historyOf is what an account remembers of its passwords: how many, and for how many days.
func (s *Session) historyOf(a *priv.Account) (passwords, days int) {
	if passwords = a.Rules.History; passwords < 0 {
		passwords = int(min(s.m.global(varPasswordHistory).n, math.MaxUint16))
	}
	if days = a.Rules.Reuse; days < 0 {
		days = int(min(s.m.global(varPasswordReuse).n, math.MaxUint16))
	}
	return passwords, days
}

// hashNew is the stored form of a new password of an account. Error: 3638, it has had it.
func (s *Session) hashNew(a *priv.Account, plugin, password string) (string, error) {
	passwords, days := s.historyOf(a)
	if password != "" && a.Had([]byte(password), types.Timestamp(s.x.Now.UnixMicro()), passwords, days) {
		return "", sqlerr.New(sqlerr.CredentialsContradictToHistory, a.Name, a.Host)
	}
	return priv.HashPassword(plugin, password, func() byte { return byte(s.env.Uint64()) })
}

// retain keeps the password of before as a second one, or drops the second one where there can be none. Errors: 3878,
// 3894, 3895.
func retain(a *priv.Account, plugin, hash string, keep bool) error {
	moved := !strings.EqualFold(plugin, a.Plugin)
	switch {
	case !keep:
		if moved || hash == "" {
			a.Second = ""
		}
		return nil
	case moved:
		return sqlerr.New(sqlerr.PasswordCannotBeRetainedOnPluginChange, a.Name, a.Host)
	case a.Hash == "":
		return sqlerr.New(sqlerr.SecondPasswordCannotBeEmpty, a.Name, a.Host)
	case hash == "":
		return sqlerr.New(sqlerr.CurrentPasswordCannotBeRetained, a.Name, a.Host)
	}
	a.Second = a.Hash
	return nil
}

func (s *Session) setPassword(ctx context.Context, st *ast.SetPassword) error {
	id := s.accountID()
	if st.User != nil {
		var err error
		if id, err = s.userID(*st.User); err != nil {
			return err
		}
	}
	if id != s.accountID() {
		if err := s.privileges().Schema(priv.Schema, priv.Update); err != nil { // as in MySQL CREATE USER is not enough
			return err
		}
	}
	auth := &ast.Auth{Password: st.Password, HasPassword: !st.Random, Random: st.Random, Retain: st.Retain, Replace: st.Replace, HasReplace: st.HasReplace}
	var drawn []drawnPassword
	err := s.changeAccounts(ctx, []priv.ID{id}, func(set *priv.Set, _ *priv.Active) (err error) {
		a := set.Account(id)
		if a == nil {
			return sqlerr.New(sqlerr.PasswordNoMatch)
		}
		drawn, err = s.authenticate(set, a, auth, false)
		return err
	})
	if err != nil {
		return err
	}
	s.hasReset(id, auth)
	return s.tellDrawn(drawn)
}

// hasReset lets a session whose password had expired do the rest, once it has given itself another one.
func (s *Session) hasReset(id priv.ID, auth *ast.Auth) {
	if s.info.Expired && auth != nil && !auth.Discard && id == s.accountID() {
		s.txnMu(func() { s.info.Expired = false })
	}
}

// mayBegin is asked before each statement of a session whose account's password had expired: only that can be changed. Error: 1820.
func (s *Session) mayBegin(st ast.Statement) error {
	own := func(u ast.User) bool {
		id, err := s.userID(u)
		return err == nil && id == s.accountID()
	}
	switch st := st.(type) {
	case *ast.SetPassword:
		if st.User == nil || own(*st.User) {
			return nil
		}
	case *ast.AlterUser:
		if len(st.Users) == 1 && len(st.Options) == 0 && own(st.Users[0].User) && st.Users[0].Auth != nil && !st.Users[0].Auth.Discard {
			return nil
		}
	}
	return sqlerr.New(sqlerr.MustChangePassword)
}

// The policies of validate_password.policy. STRONG asks for no more than MEDIUM, since there is no dictionary.
const policyLow = 0

// validPassword checks a password by the component that checks passwords, if it is installed. Error: 1819.
func (s *Session) validPassword(set *priv.Set, a *priv.Account, password string) error {
	if !set.Component(priv.PasswordComponent) || s.acl.system {
		return nil
	}
	if s.m.weakness(password) == nil && !s.namesUser(password) {
		return nil
	}
	return sqlerr.New(sqlerr.NotValidPassword)
}

// namesUser reports whether a password is the name of the session's user or account, as Manager.names does.
func (s *Session) namesUser(password string) bool {
	return s.m.names(password, s.info.User) || s.m.names(password, s.accountID().Name)
}

// names reports whether a password is a user's name, or that backwards, where validate_password.check_user_name asks
// for that.
func (m *Manager) names(password, user string) bool {
	return user != "" && m.global(varPolicyUserName).n != 0 && (password == user || password == backwards(user))
}

// PasswordFault is the variable of the rule that the password of an account breaks, for what is no statement; empty: it
// breaks none, or the component that checks passwords is not installed.
func (m *Manager) PasswordFault(id priv.ID, password string) (rule string, err error) {
	k, err := m.accounts()
	if err != nil || k.set == nil || !k.set.Component(priv.PasswordComponent) {
		return "", err
	}
	broken := m.weakness(password)
	if broken == nil && m.names(password, id.Name) {
		broken = varPolicyUserName
	}
	if broken != nil {
		rule = broken.name
	}
	return rule, nil
}

func backwards(text string) string {
	runes := []rune(text)
	for i, k := 0, len(runes)-1; i < k; i, k = i+1, k-1 {
		runes[i], runes[k] = runes[k], runes[i]
	}
	return string(runes)
}

// weakness is the rule that a password breaks: to be as long as validate_password.length, and to have what the policy
// asks for. nil: it breaks none.
func (m *Manager) weakness(password string) *variable {
	if utf8.RuneCountInString(password) < m.passwordLength() {
		return varPolicyLength
	}
	if m.global(varPolicy).n == policyLow {
		return nil
	}
	digits, lower, upper, special := 0, 0, 0, 0
	for _, r := range password {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsUpper(r):
			upper++
		case unicode.IsLower(r):
			lower++
		default:
			special++
		}
	}
	for _, c := range [...]struct {
		rule *variable
		has  int
	}{{varPolicyNumbers, digits}, {varPolicyMixed, min(lower, upper)}, {varPolicySpecial, special}} {
		if uint64(c.has) < m.global(c.rule).n {
			return c.rule
		}
	}
	return nil
}

// passwordLength is validate_password.length, which cannot be less than what the counts add up to.
func (m *Manager) passwordLength() int {
	return int(min(max(m.global(varPolicyLength).n, m.passwordCounts()), math.MaxInt32))
}

func (m *Manager) passwordCounts() uint64 {
	return m.global(varPolicyNumbers).n + 2*m.global(varPolicyMixed).n + m.global(varPolicySpecial).n
}

// longerPasswords has validate_password.length follow a count that was set.
func longerPasswords(v *variable) {
	v.appliedGlobal = func(m *Manager, _ varValue) {
		if n := uint64(m.passwordLength()); n != m.global(varPolicyLength).n {
			m.setGlobal(varPolicyLength, varValue{n: n})
		}
	}
}

// strength is VALIDATE_PASSWORD_STRENGTH().
func (s *Session) strength(password string) int64 {
	k, err := s.m.accounts()
	n := utf8.RuneCountInString(password)
	switch {
	case err != nil || k.set == nil || !k.set.Component(priv.PasswordComponent), n < 4, s.namesUser(password):
		return 0
	case n < s.m.passwordLength():
		return 25
	}
	if s.m.global(varPolicy).n == policyLow {
		return 50
	}
	if s.m.weakness(password) != nil {
		return 50
	}
	return 100
}

// drawPassword draws a password of generated_random_password_length characters that the policy takes, if it is long enough.
func (s *Session) drawPassword(set *priv.Set, a *priv.Account) string {
	const lower, upper, digits, special = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "!#$%&()*+,-./:;<=>?@[]^_{|}~"
	const all = lower + upper + digits + special
	b := make([]byte, s.value(varRandomLength).n)
	for range 100 {
		for i := range b {
			b[i] = all[s.random(len(all))]
		}
		if s.validPassword(set, a, string(b)) == nil {
			break
		}
	}
	return string(b)
}

// random is a number below n, each as likely as the others.
func (s *Session) random(n int) int {
	limit := math.MaxUint64 - math.MaxUint64%uint64(n)
	for {
		if x := s.env.Uint64(); x < limit {
			return int(x % uint64(n))
		}
	}
}
