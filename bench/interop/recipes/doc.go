// Package recipes has the tests of the programs in examples/recipes. Each test builds a recipe and runs it with a
// real server, which others have written. The test kills the server with SIGKILL, starts it again, and counts which
// messages were lost and which came twice.
package recipes
