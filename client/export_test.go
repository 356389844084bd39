package client

// OpenWith is Open with another way to dial and another silence.
var OpenWith = open
