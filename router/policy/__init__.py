"""What the owner of a deployment has decided: the tables of a policy file, and the rules that are asked."""
