package history

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestVanished(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		fmt.Sprintf("%s:%d", host, os.Getpid()):           false,
		fmt.Sprintf("%s:%d", host, ended.Process.Pid):     true,
		fmt.Sprintf("not-%s:%d", host, ended.Process.Pid): false,
		"serve-1":      false,
		host + ":http": false,
		host + ":0":    false,
		"":             false,
	} {
		if got := Vanished(address); got != want {
			t.Errorf("vanished(%q) = %v, want %v", address, got, want)
		}
	}
}
