// Package page reads the fenced blocks of documents, and runs their commands as a reader
// would who copies them. A comment in the page's source, right before a block, says what
// else is done with it:
//
//	<!-- test: fails -->                 the command fails, and the output shown next says how
//	<!-- test: repeat -->                repeated until it prints the output shown next
//	<!-- test: output -->                what the block before printed
//	<!-- test: save as FILE -->          the reader saves it
//	<!-- test: stand-in NAME: why -->    the test does something else instead, under that name
//	<!-- test: as in PAGE -->            each of its lines is run as part of that page
//	<!-- test: by TestName -->           another test runs it: a runner of that name alone
//	<!-- test: not run: why -->          nothing runs it
//
// Blocks without a mark and without a language, or of sh, are commands, which run in the
// order of the page. It refuses marks that it does not know.
package page
