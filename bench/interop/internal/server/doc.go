// Package server runs the servers that tests start on a port of loopback, kill and start again.
package server
