package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if IsServer() {
		os.Exit(ServerMain())
	}
	goleak.VerifyTestMain(m)
}
