package process

import "syscall"

// space returns the id of this start of the machine; "" = it is not known. All processes of a Mac
// share the process numbers.
func space() string {
	id, err := syscall.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
