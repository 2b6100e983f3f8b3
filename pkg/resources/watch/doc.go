// Package watch watches the Kubernetes API in bounded memory, and with no more permissions than
// it needs. [NewInformer] is for all objects of a kind: lists are read page by page, and objects
// are reduced before they are kept. [Object] is for one Secret, ConfigMap or ServiceAccount by its
// name: no other object of the namespace is read, so that a Role can be narrowed to the name.
//
// It refuses to watch single objects of other kinds, and to let an object that it cannot read look
// like one that does not exist. It does not decide what an object means.
package watch
