//go:build !unix

package main

import (
	"errors"
	"time"
)

func usage() (time.Duration, error) { return 0, errors.ErrUnsupported }
