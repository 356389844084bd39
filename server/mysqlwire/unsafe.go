package mysqlwire

import "unsafe"

// unsafeString is b as a string. REQUIRES: b does not change any more.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
