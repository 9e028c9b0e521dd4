package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/herd"
	"github.com/redial-go/redial/bench/soak"
)

// programs is a directory for programs that tests build.
var programs string

func TestMain(m *testing.M) {
	herd.ServeChild()
	if soak.IsServer() {
		os.Exit(soak.ServerMain())
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		panic(err)
	}
	programs = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.RemoveAll(dir); os.Exit(code) }))
}
