package ast

// User is name@host. Current is CURRENT_USER.
type User struct {
	Name    string
	Host    string // "%" if not given
	Current bool
}

// UserSpec is a user with the way to authenticate.
type UserSpec struct {
	User User
	Auth *Auth // nil: none given
}

// Auth is IDENTIFIED ..
type Auth struct {
	Plugin      string // WITH plugin, or empty
	Password    string // BY
	HasPassword bool
	Hash        string // AS
	HasHash     bool
	Random      bool   // BY RANDOM PASSWORD
	Replace     string // REPLACE 'current password'
	HasReplace  bool
	Retain      bool // RETAIN CURRENT PASSWORD
	Discard     bool // DISCARD OLD PASSWORD
}

// AccountOption is an option of CREATE USER and ALTER USER by its words in upper case
// with underscores: REQUIRE_NONE, REQUIRE_SSL, REQUIRE_X509, REQUIRE_SUBJECT,
// REQUIRE_ISSUER, REQUIRE_CIPHER, MAX_QUERIES_PER_HOUR, MAX_UPDATES_PER_HOUR,
// MAX_CONNECTIONS_PER_HOUR, MAX_USER_CONNECTIONS, PASSWORD_EXPIRE,
// PASSWORD_EXPIRE_DEFAULT, PASSWORD_EXPIRE_NEVER, PASSWORD_EXPIRE_INTERVAL,
// PASSWORD_HISTORY, PASSWORD_REUSE_INTERVAL, PASSWORD_REQUIRE_CURRENT,
// FAILED_LOGIN_ATTEMPTS, PASSWORD_LOCK_TIME, ACCOUNT_LOCK, ACCOUNT_UNLOCK, COMMENT,
// ATTRIBUTE.
type AccountOption struct {
	Name   string
	Value  string
	Number int64 // -1: DEFAULT or UNBOUNDED
}

// CreateUser is CREATE USER and, with Role, CREATE ROLE.
type CreateUser struct {
	source
	Role        bool
	IfNotExists bool
	Users       []UserSpec
	Options     []AccountOption
	DefaultRole []User
}

// AlterUser is ALTER USER.
type AlterUser struct {
	source
	IfExists bool
	Users    []UserSpec
	Options  []AccountOption
}

// DropUser is DROP USER and, with Role, DROP ROLE.
type DropUser struct {
	source
	Role     bool
	IfExists bool
	Users    []User
}

// RenameUser is RENAME USER.
type RenameUser struct {
	source
	Renames []UserRename
}

// UserRename is old TO new.
type UserRename struct {
	Old, New User
}

// SetPassword is SET PASSWORD. User is nil for the current user.
type SetPassword struct {
	source
	User     *User
	Password string
	Random   bool
	Replace  string
	Retain   bool

	HasReplace bool
}

// Privilege is a privilege by its name in upper case (SELECT, CREATE VIEW, ALL,
// GRANT OPTION, dynamic ones as BACKUP_ADMIN), with columns if any.
type Privilege struct {
	Name    string
	Columns []string
}

// GrantTarget is what privileges are on: *.*, schema.* or a table.
type GrantTarget struct {
	Global bool
	Schema string // may be a pattern with % and _; empty: the current schema
	Table  string // empty: schema.*
	Kind   string // FUNCTION, PROCEDURE or empty
}

// Grant is GRANT privileges and, with Revoke, REVOKE privileges.
type Grant struct {
	source
	Revoke          bool
	IfExists        bool // REVOKE IF EXISTS
	IgnoreUnknown   bool // REVOKE .. IGNORE UNKNOWN USER
	Privileges      []Privilege
	On              GrantTarget
	Users           []UserSpec
	WithGrantOption bool
}

// RevokeAll is REVOKE ALL PRIVILEGES, GRANT OPTION FROM users.
type RevokeAll struct {
	source
	IfExists      bool
	IgnoreUnknown bool
	Users         []User
}

// GrantRole is GRANT roles TO users and, with Revoke, REVOKE roles FROM users.
type GrantRole struct {
	source
	Revoke          bool
	IfExists        bool
	IgnoreUnknown   bool
	Roles           []User
	Users           []User
	WithAdminOption bool
}

// RoleSet says which roles: those listed or all, none, the default ones.
type RoleSet uint8

const (
	RolesListed RoleSet = iota
	RolesNone
	RolesAll
	RolesAllExcept // ALL EXCEPT listed
	RolesDefault
)

// SetRole is SET ROLE.
type SetRole struct {
	source
	Set   RoleSet
	Roles []User
}

// SetDefaultRole is SET DEFAULT ROLE and ALTER USER .. DEFAULT ROLE.
type SetDefaultRole struct {
	source
	Set   RoleSet
	Roles []User
	Users []User
}
