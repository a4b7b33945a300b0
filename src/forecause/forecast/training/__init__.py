"""Learning by gradient descent: the loop, sparse gradients, several processes."""
