"""The folder of the stand-in SDK: put it on a path, and `import siflow` finds the package inside."""
