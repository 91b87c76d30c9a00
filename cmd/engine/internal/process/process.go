package process

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Name returns HOST:PID#MARK, the default address of an engine. With HOST and PID, people can find
// this process. MARK has 8 hexadecimal digits, and identifies the set of processes to which the
// number PID belongs: this start of this machine and, on Linux, this PID namespace. If the system
// does not have these data, Name returns only HOST:PID.
func Name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	name := fmt.Sprintf("%s:%d", host, os.Getpid())
	if m := mark(); m != "" {
		name += "#" + m
	}
	return name
}

// Ended reports whether the process of an engine has certainly ended. The store cannot know that
// yet while the engine's lease still lasts, for example after a second Ctrl-C. The parameter
// `address` is the engine's address.
//
// Ended needs the mark of Name in the address. The name of the host is not enough: two containers
// may have the same name. Without a mark, a number after the host may also be a port, because a
// person has set the address with --address. So Ended returns false for an address without the mark
// of this machine.
func Ended(address string) bool {
	name, m, marked := strings.Cut(address, "#")
	if !marked || m == "" || m != mark() {
		return false
	}
	pid, err := strconv.Atoi(name[strings.LastIndex(name, ":")+1:])
	return err == nil && pid > 0 && !running(pid)
}

// mark returns the mark of this machine for Name, or "" if the system does not have the data.
func mark() string {
	id := space()
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}
