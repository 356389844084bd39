package undo

// HasRoom reports whether records with that many bytes of payload in all fit
// without a further [Log.Prepare].
func (l *Log) HasRoom(size int) bool { return size <= MaxRecord && l.hasRoom(size) }
