// Pause does nothing until it is told to end: the kubelet keeps a pod's namespaces by such a
// process, and its volumes' image.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	<-end
}
