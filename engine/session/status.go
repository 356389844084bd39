package session

// StatusFlags are the server status flags of the MySQL protocol that a session knows of.
// The values are the protocol's. SERVER_MORE_RESULTS_EXISTS is Outcome.More, those of
// cursors are the door's own.
type StatusFlags uint16

const (
	StatusInTransaction      StatusFlags = 0x0001 // SERVER_STATUS_IN_TRANS
	StatusAutocommit         StatusFlags = 0x0002 // SERVER_STATUS_AUTOCOMMIT
	StatusNoGoodIndex        StatusFlags = 0x0010 // SERVER_QUERY_NO_GOOD_INDEX_USED
	StatusNoIndex            StatusFlags = 0x0020 // SERVER_QUERY_NO_INDEX_USED
	StatusSchemaDropped      StatusFlags = 0x0100 // SERVER_STATUS_DB_DROPPED
	StatusNoBackslashEscapes StatusFlags = 0x0200 // SERVER_STATUS_NO_BACKSLASH_ESCAPES
	StatusMetadataChanged    StatusFlags = 0x0400 // SERVER_STATUS_METADATA_CHANGED
	StatusInTransReadOnly    StatusFlags = 0x2000 // SERVER_STATUS_IN_TRANS_READONLY
	StatusStateChanged       StatusFlags = 0x4000 // SERVER_SESSION_STATE_CHANGED
)

// ChangeKind says what part of a session's state a change concerns. The values are
// those of the protocol's session state information.
type ChangeKind uint8

const (
	ChangeVariable        ChangeKind = 0 // SESSION_TRACK_SYSTEM_VARIABLES: Name and Value
	ChangeSchema          ChangeKind = 1 // SESSION_TRACK_SCHEMA: Value
	ChangeState           ChangeKind = 2 // SESSION_TRACK_STATE_CHANGE: Value is "1"
	ChangeGTIDs           ChangeKind = 3 // SESSION_TRACK_GTIDS: Value is uuid:number
	ChangeCharacteristics ChangeKind = 4 // SESSION_TRACK_TRANSACTION_CHARACTERISTICS: Value is SQL
	ChangeTransaction     ChangeKind = 5 // SESSION_TRACK_TRANSACTION_STATE: Value is eight letters
)

// Change is a change of the session's state that a client may want to hear of.
type Change struct {
	Kind  ChangeKind
	Name  string
	Value string
}
