package process

import "os"

// space returns a text that identifies the PID namespace of this process; "" = it is not known. No
// other start of a machine has the same boot id. A container usually has a PID namespace of its
// own, and its own process numbers.
func space() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(boot) == 0 {
		return ""
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return string(boot) + ns
}
