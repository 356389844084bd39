package ast

// ShowKind is what SHOW shows.
type ShowKind uint8

const (
	ShowSchemas ShowKind = iota
	ShowTables
	ShowTableStatus
	ShowOpenTables
	ShowColumns // and DESCRIBE
	ShowIndexes
	ShowCreateSchema
	ShowCreateTable
	ShowCreateView
	ShowCreateUser
	ShowCreateProgram // PROCEDURE, FUNCTION, TRIGGER, EVENT: Name says which
	ShowVariables
	ShowStatus
	ShowWarnings
	ShowErrors
	ShowProcessList
	ShowGrants
	ShowPrivileges
	ShowEngines
	ShowEngine // ENGINE Name STATUS | MUTEX | LOGS (What)
	ShowPlugins
	ShowCharset
	ShowCollation
	ShowTriggers
	ShowEvents
	ShowProcedures // PROCEDURE STATUS
	ShowFunctions  // FUNCTION STATUS
	ShowProfiles
	ShowProfile
	ShowBinaryLogs
	ShowBinaryLogEvents // BINLOG EVENTS IN File FROM Position
	ShowBinaryLogStatus // and MASTER STATUS
	ShowReplicas        // and SLAVE HOSTS
	ShowReplicaStatus   // and SLAVE STATUS
	ShowRelayLogEvents
)

// Show is SHOW and DESCRIBE. Which fields count depends on the kind.
type Show struct {
	source
	Kind     ShowKind
	Full     bool
	Extended bool
	Global   bool // GLOBAL VARIABLES, GLOBAL STATUS
	Schema   string
	Table    TableName
	Column   string // DESCRIBE table column; a pattern
	Like     Expr   // nil if not given
	Where    Expr
	Name     string // engine, kind of program
	What     string // STATUS, MUTEX, LOGS
	// IfNotExists is SHOW CREATE DATABASE IF NOT EXISTS.
	IfNotExists bool
	User        *User  // GRANTS, CREATE USER; nil: the current user
	Using       []User // GRANTS .. USING roles
	Count       bool   // SHOW COUNT(*) WARNINGS
	Limit       *Limit
	File        string
	Position    uint64
	Channel     string
}
