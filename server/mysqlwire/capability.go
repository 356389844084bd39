package mysqlwire

import "strings"

// capability flags are what client and server agree on in the handshake; the names are
// the protocol's without CLIENT_.
type capability uint32

const (
	capLongPassword     capability = 1 << 0
	capFoundRows        capability = 1 << 1
	capLongFlag         capability = 1 << 2
	capConnectWithDB    capability = 1 << 3
	capCompress         capability = 1 << 5
	capODBC             capability = 1 << 6
	capLocalFiles       capability = 1 << 7
	capIgnoreSpace      capability = 1 << 8
	capProtocol41       capability = 1 << 9
	capInteractive      capability = 1 << 10
	capSSL              capability = 1 << 11
	capIgnoreSigpipe    capability = 1 << 12
	capTransactions     capability = 1 << 13
	capReserved         capability = 1 << 14
	capSecureConnection capability = 1 << 15
	capMultiStatements  capability = 1 << 16
	capMultiResults     capability = 1 << 17
	capPSMultiResults   capability = 1 << 18
	capPluginAuth       capability = 1 << 19
	capConnectAttrs     capability = 1 << 20
	capLenencAuthData   capability = 1 << 21
	capExpiredPasswords capability = 1 << 22
	capSessionTrack     capability = 1 << 23
	capDeprecateEOF     capability = 1 << 24
	capZstd             capability = 1 << 26
	capQueryAttributes  capability = 1 << 27
)

// offered is what every server of ours can; SSL comes with a certificate.
const offered = capLongPassword | capFoundRows | capLongFlag | capConnectWithDB | capCompress | capODBC |
	capLocalFiles | capIgnoreSpace | capProtocol41 | capInteractive | capIgnoreSigpipe | capTransactions |
	capReserved | capSecureConnection | capMultiStatements | capMultiResults | capPSMultiResults |
	capPluginAuth | capConnectAttrs | capLenencAuthData | capExpiredPasswords | capSessionTrack |
	capDeprecateEOF | capZstd | capQueryAttributes

func (c capability) has(f capability) bool { return c&f == f }

// command is the first byte of a client's packet.
type command byte

const (
	comQuit             command = 0x01
	comInitDB           command = 0x02
	comQuery            command = 0x03
	comFieldList        command = 0x04
	comCreateDB         command = 0x05
	comDropDB           command = 0x06
	comRefresh          command = 0x07
	comShutdown         command = 0x08
	comStatistics       command = 0x09
	comProcessInfo      command = 0x0a
	comProcessKill      command = 0x0c
	comDebug            command = 0x0d
	comPing             command = 0x0e
	comChangeUser       command = 0x11
	comBinlogDump       command = 0x12
	comRegisterSlave    command = 0x15
	comStmtPrepare      command = 0x16
	comStmtExecute      command = 0x17
	comStmtSendLongData command = 0x18
	comStmtClose        command = 0x19
	comStmtReset        command = 0x1a
	comSetOption        command = 0x1b
	comStmtFetch        command = 0x1c
	comBinlogDumpGTID   command = 0x1e
	comResetConnection  command = 0x1f
)

// Status flags of the protocol that are the door's own.
const (
	statusMoreResults  uint16 = 0x0008
	statusCursorExists uint16 = 0x0040
	statusLastRowSent  uint16 = 0x0080
	statusStateChanged uint16 = 0x4000
)

// First bytes of answers.
const (
	headerOK        = 0x00
	headerMoreData  = 0x01
	headerLocalFile = 0xfb
	headerEOF       = 0xfe
	headerErr       = 0xff
)

// Authentication methods.
const (
	PluginSHA2   = "caching_sha2_password"
	PluginNative = "mysql_native_password"
	// pluginMember is how a member of the group hands a session over that it has
	// authenticated itself: the answer is a ticket that this node has given to it.
	pluginMember = "trireme_member"
)

// quoteName quotes an identifier.
func quoteName(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }
